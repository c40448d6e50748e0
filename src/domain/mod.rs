//! The words of the service as types: floor 0.
//!
//! Nothing here knows of HTTP, SQL, mail or the clock. A value that exists has been checked, and
//! nobody above needs to check it again.

pub mod base64;
pub mod base_url;
pub mod calendar;
pub mod consent;
pub mod contact;
pub mod counts;
pub mod disk_image;
pub mod email;
pub mod legible;
pub mod letter;
pub mod limits;
pub mod mailbox;
pub mod person;
pub mod plural;
pub mod relay;
pub mod release;
pub mod sha256;
pub mod signup;
pub mod statistics;
pub mod suppression;
pub mod text;
pub mod time;
pub mod unsubscribe;
pub mod version;
