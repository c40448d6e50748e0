//! Domain types. They are validated when they are created, so other layers need not check them again.
//!
//! Nothing here knows about HTTP, SQL, SMTP or the clock. Unless it says otherwise, an error is a clause such as "it is
//! not a version" that completes a sentence of its caller.

pub mod colour;
pub mod contact;
pub mod desk;
pub mod letters;
pub mod limits;
pub mod mail;
pub mod markdown;
pub mod network;
pub mod outbox;
pub mod paging;
pub mod parse;
pub mod people;
pub mod rate_limit;
pub mod releases;
pub mod sha256;
pub mod signups;
pub mod statistics;
pub mod text;
pub mod time;
pub mod tokens;
