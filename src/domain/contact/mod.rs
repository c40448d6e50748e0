//! Contact messages: what they are, how one is answered, and how long they are kept.

mod answer;
mod message;
mod retention;

pub use message::{ContactMessage, MessageSearch, ReceivedMessage, reference};
pub use retention::Retention;
