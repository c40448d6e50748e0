//! What others see of us: the only room that asks strangers. Floor 1.
//!
//! Asks name servers, and looks at the certificate a site shows. What that means for mail and for
//! visitors is for others to judge.

mod certificate;
mod message;
mod name_servers;

pub use certificate::{Certificate, Flaw, Unproven};
pub use name_servers::{InvalidNameServer, NameServers, Unasked, WayForMail};
