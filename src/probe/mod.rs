//! Clients for `check` and `health`: the records of a domain, the certificate of a site and the ops listener of the service, as
//! seen from this machine.
//!
//! This module only reports what it finds; the caller decides what that means for mail and visitors.

mod certificate;
mod dns;
mod http;

pub use certificate::{Certificate, CertificateFailure, CertificateFault};
pub use dns::{DnsFailure, InvalidNameServer, MxStatus, NameServers};
pub use http::get;
