//! The only room with SMTP: makes mails and hands them to the makers' mail server. Floor 1.
//!
//! Knows nothing of databases, and decides neither who is mailed nor when to try again.

mod compose;
mod contact;
mod letter;
mod smtp;

pub use compose::{Mail, MailAddress, Mailer, UnsupportedAddress};
pub use letter::LetterMail;
pub use smtp::{FailureCause, SendFailure, SmtpConnection};
