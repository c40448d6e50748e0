//! Contact messages, and the mails that tell the makers of them.

mod maker_mail;
mod message;
mod retention;

pub use maker_mail::{MakerMailKind, RecentMails, Trouble};
pub use message::{ContactMessage, ReceivedMessage, mail_interval, reference, retry_delay};
pub use retention::Retention;
