//! Domain types. They are validated when they are created, so other layers need not check them again.
//!
//! Nothing here knows about HTTP, SQL, SMTP or the clock. Unless it says otherwise, an `InvalidX` error is a clause
//! such as "it is not a version" that completes a sentence of its caller.

pub mod base_url;
pub mod bounce;
pub mod calendar;
pub mod client;
pub mod confirmation;
pub mod consent;
pub mod contact;
pub mod counts;
pub mod disk_image;
pub mod display_text;
pub mod dkim;
pub mod dkim_record;
pub mod email;
pub mod front_matter;
pub mod host_list;
pub mod host_name;
pub mod hourly;
pub mod image_name;
pub mod letter;
pub mod limits;
pub mod link_token;
pub mod listen_address;
pub mod mailbox;
pub mod maker_mail;
pub mod person;
pub mod plural;
pub mod rate_limit;
pub mod reader;
pub mod reads;
pub mod relay;
pub mod release;
pub mod retention;
pub mod sha256;
pub mod signup;
pub mod statistics;
pub mod suppression;
pub mod text;
pub mod time;
pub mod trouble;
pub mod trusted_proxies;
pub mod unprintable;
pub mod unsubscribe;
pub mod version;
pub mod web_url;
