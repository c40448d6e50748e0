//! The site's TLS certificate: reading it, and choosing it in a handshake. Layer 1.
//!
//! Knows no listeners and no HTTP.

mod certificate;
mod status;

pub use certificate::{InvalidCertificate, SiteCertificate};
pub use status::{CertificateState, CertificateStatus};
