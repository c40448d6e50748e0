//! Contact messages, their delivery, and the inbox.

mod delivery;
mod inbox;
mod messages;

pub use delivery::{DueMessage, MessageLease};
pub use inbox::{DeliveryState, InboxEntry, InboxFilter};
