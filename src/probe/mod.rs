//! What others see of us: the only room that asks strangers. Floor 1.
//!
//! Asks name servers, and looks at the certificate a site shows. What that means for mail and for
//! visitors is for others to judge.

mod certificate;
mod dns;
mod message;

pub use certificate::{Certificate, CertificateFailure, CertificateFault};
pub use dns::{DnsFailure, InvalidNameServer, MailRoute, NameServers};
