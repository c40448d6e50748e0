//! The only room with SMTP: makes mails and hands them to the makers' mail server. Floor 1.
//!
//! Knows nothing of databases, and decides neither who is mailed nor when to try again.

mod compose;
mod forwarded;
mod hand_over;
mod monthly;

pub use compose::{Correspondent, Mail, Postmaster, Unmailable};
pub use hand_over::{Cause, Connection, Trouble};
pub use monthly::MonthlyMail;
