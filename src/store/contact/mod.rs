//! Contact messages, their delivery, and the inbox.

mod inbox;
mod message_leases;
mod messages;

pub use inbox::{DeliveryState, InboxEntry, InboxFilter, InboxQuery};
pub use message_leases::{DueMessage, MessageLease};
