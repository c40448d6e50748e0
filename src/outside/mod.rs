//! What others see of us: the only room that asks strangers. Floor 1.
//!
//! Asks name servers and tells what they say; what that means for mail is for others to judge.

mod message;
mod name_servers;

pub use name_servers::{InvalidNameServer, NameServers, Unasked, WayForMail};
