//! Addresses, the mail server, and DKIM.

mod dkim;
pub mod email;
mod mailbox;
mod relay;

pub use dkim::{DkimRecord, DkimSelector, KeyKind, RecordStatus};
pub use email::{EmailAddress, InvalidEmail};
pub use mailbox::Mailbox;
pub use relay::{Relay, Security, is_trusted_local};
