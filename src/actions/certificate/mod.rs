//! The certificate of the site: when it is ordered, and its copy in a file.

mod copy;
mod order;

pub use copy::delete_certificate_copy;
pub use order::CertificateOrders;
