//! Composes emails and sends them over SMTP, and reads returned ones. Layer 1, and the only module that speaks SMTP.
//!
//! Knows nothing of databases, and decides neither who is mailed nor when to retry.

mod alert;
mod compose;
mod confirmation;
mod contact;
mod dkim;
mod dkim_key;
mod letter;
mod line_stream;
mod returned;
mod smtp;

pub use alert::Alert;
pub use compose::{Mail, MailAddress, Mailer, UnsupportedAddress};
pub use confirmation::ConfirmationMail;
pub use dkim::DkimSigner;
pub use dkim_key::{DkimKey, GenerateFailure, InvalidDkimKey, generate_dkim_key};
pub use letter::{LetterMail, RejectedMailboxesMail};
pub use returned::ReturnedMail;
pub use smtp::{FailureCause, SendFailure, SmtpConnection};
