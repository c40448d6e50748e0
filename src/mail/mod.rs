//! Composes emails and sends them over SMTP. Layer 1, and the only module that speaks SMTP.
//!
//! Knows nothing of databases, and decides neither who is mailed nor when to retry.

mod compose;
mod contact;
mod letter;
mod smtp;
mod troubles;

pub use compose::{Mail, MailAddress, Mailer, UnsupportedAddress};
pub use letter::LetterMail;
pub use smtp::{FailureCause, SendFailure, SmtpConnection};
pub use troubles::TroubleMail;
