//! Mail that waits, and the log of what the makers got.

mod maker_mails;
mod queue;

pub use queue::{Backlog, DeliveryFailure, LeasedAlert, MailKind};
