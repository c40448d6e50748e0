//! The service as seen from outside: DNS records and TLS certificates, for `check`.
//!
//! This module only reports what it finds; the caller decides what that means for mail and visitors.

mod certificate;
mod dns;

pub use certificate::{Certificate, CertificateFailure, CertificateFault};
pub use dns::{DnsFailure, InvalidNameServer, MxStatus, NameServers};
