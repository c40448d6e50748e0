//! Clients for `check`: the records of a domain and the certificate of a site, as seen from this machine.
//!
//! This module only reports what it finds; the caller decides what that means for mail and visitors.

mod certificate;
mod dns;

pub use certificate::{Certificate, CertificateFailure};
pub use dns::{DnsFailure, InvalidNameServer, MxStatus, NameServers};
