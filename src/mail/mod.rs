//! Composes emails and sends them over SMTP, and reads returned ones. Layer 1, and the only module that speaks SMTP.
//!
//! Knows nothing of databases, and decides neither who is mailed nor when to retry.

mod compose;
mod dkim;
mod line_stream;
mod mime_reports;
mod smtp;
mod to_makers;

pub use compose::{Mail, MailAddress, MailParts, Mailer, UnsupportedAddress};
pub use dkim::{DkimKey, DkimSigner, GenerateFailure, InvalidDkimKey, generate_dkim_key};
pub use mime_reports::ReturnedMail;
pub use smtp::{FailureCause, SendFailure, SmtpConnection};
pub use to_makers::alert_texts;
