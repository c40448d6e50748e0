//! A conversation with the mail server: one connection, some mails, goodbye.
//!
//! Each part has its time. What went wrong is told by what it means for the mail: that it was not
//! taken for certain, or that nobody knows.

use std::fmt;
use std::time::Duration;

use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail as MailFrom, Rcpt};
use lettre::transport::smtp::extension::ClientId;
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use super::compose::{Mail, Mailer};
use crate::domain::relay::Security;

/// For reaching the server, encrypting and logging in.
const CONNECT_WITHIN: Duration = Duration::from_mins(1);
/// For who sends to whom.
const ADDRESS_WITHIN: Duration = Duration::from_mins(1);
/// For the mail itself up to the server's yes. Servers may think long about it, and whoever hangs up
/// early gets it sent twice.
const TAKE_WITHIN: Duration = Duration::from_mins(5);
const GOODBYE_WITHIN: Duration = Duration::from_secs(2);

/// Why a mail was not handed over.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SendFailure {
    /// The server is away, or wants nothing from us. The mail itself was not shown to it.
    #[error("the mail server cannot be used: {0}")]
    Unavailable(FailureCause),
    /// The server takes nothing for this recipient, now or ever. The mail itself was not shown to it.
    #[error("the mail server takes nothing for a recipient: {cause}")]
    RecipientRejected { permanent: bool, cause: FailureCause },
    /// The server has seen the mail and does not take it, now or ever.
    #[error("the mail server refused a mail: {cause}")]
    MessageRejected { permanent: bool, cause: FailureCause },
    /// The connection broke while the mail was under way: it may have arrived.
    #[error("the connection broke while a mail was under way: {0}")]
    Uncertain(FailureCause),
}

/// What was behind it. Shown, it leaves out what the server said, which may name people, and gives
/// the number alone.
#[derive(Clone, Debug)]
pub struct FailureCause {
    pub detail: String,
    code: Option<String>,
}

impl SendFailure {
    /// Whether the server says that there is no such mailbox: an enhanced status code 5.1.x.
    #[must_use]
    pub fn is_unknown_mailbox(&self) -> bool {
        let (Self::RecipientRejected { permanent: true, cause } | Self::MessageRejected { permanent: true, cause }) =
            self
        else {
            return false;
        };
        cause.detail.split_whitespace().any(|word| {
            word.strip_prefix("5.1.")
                .is_some_and(|rest| (1..=3).contains(&rest.len()) && rest.bytes().all(|b| b.is_ascii_digit()))
        })
    }

    /// Everything that is known of it, for the makers alone.
    #[must_use]
    pub fn detail(&self) -> &str {
        match self {
            Self::Unavailable(cause)
            | Self::RecipientRejected { cause, .. }
            | Self::MessageRejected { cause, .. }
            | Self::Uncertain(cause) => &cause.detail,
        }
    }
}

impl fmt::Display for FailureCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.code {
            Some(code) => write!(f, "it said {code}"),
            None => f.write_str(&self.detail),
        }
    }
}

impl From<Error> for FailureCause {
    fn from(error: Error) -> Self {
        Self { detail: error.to_string(), code: error.status().map(|code| code.to_string()) }
    }
}

impl FailureCause {
    /// Known without asking a server.
    #[must_use]
    pub fn new(words: &str) -> Self {
        Self { detail: words.to_owned(), code: None }
    }
}

impl From<Elapsed> for FailureCause {
    fn from(_: Elapsed) -> Self {
        Self::new("it does not answer")
    }
}

/// An open conversation.
pub struct SmtpConnection(AsyncSmtpConnection);

/// It holds a stream, and nothing to show.
impl fmt::Debug for SmtpConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SmtpConnection")
    }
}

impl Mailer {
    /// Reaches the mail server, and proves who we are where that is asked for.
    ///
    /// # Errors
    /// [`SendFailure::Unavailable`]
    pub async fn connect(&self) -> Result<SmtpConnection, SendFailure> {
        match timeout(CONNECT_WITHIN, self.open()).await {
            Ok(Ok(opened)) => Ok(SmtpConnection(opened)),
            Ok(Err(error)) => Err(SendFailure::Unavailable(error.into())),
            Err(elapsed) => Err(SendFailure::Unavailable(elapsed.into())),
        }
    }

    async fn open(&self) -> Result<AsyncSmtpConnection, Error> {
        let relay = &self.relay;
        let us = ClientId::Domain(self.domain.clone());
        let at_once = (relay.security() == Security::Tls).then(|| self.tls()).transpose()?;
        let server = (relay.host(), relay.port());
        let mut smtp = AsyncSmtpConnection::connect_tokio1(server, Some(CONNECT_WITHIN), &us, at_once, None).await?;
        let starts_tls = match relay.security() {
            Security::Tls => false,
            Security::StartTls => true,
            Security::StartTlsIfOffered => smtp.can_starttls(),
        };
        if starts_tls {
            smtp.starttls(self.tls()?, &us).await?;
        }
        if let Some(login) = relay.login() {
            let credentials = Credentials::new(login.user.clone(), login.password.clone());
            smtp.auth(DEFAULT_MECHANISMS, &credentials).await?;
        }
        Ok(smtp)
    }

    /// The certificate has to be one that this system trusts, except where the connection does not
    /// leave the machine.
    fn tls(&self) -> Result<TlsParameters, Error> {
        let anything_goes = self.relay.is_loopback();
        TlsParameters::builder(self.relay.host())
            .dangerous_accept_invalid_certs(anything_goes)
            .dangerous_accept_invalid_hostnames(anything_goes)
            .build()
    }
}

impl SmtpConnection {
    /// Hands a mail over. After any trouble the connection is of no further use.
    ///
    /// # Errors
    /// As [`SendFailure`] tells.
    pub async fn send(&mut self, mail: &Mail) -> Result<(), SendFailure> {
        match timeout(ADDRESS_WITHIN, self.address(mail)).await {
            Ok(addressed) => addressed?,
            Err(elapsed) => return Err(SendFailure::Unavailable(elapsed.into())),
        }
        match timeout(TAKE_WITHIN, self.0.message(&mail.bytes)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) if error.is_transient() || error.is_permanent() => {
                Err(SendFailure::MessageRejected { permanent: error.is_permanent(), cause: error.into() })
            }
            Ok(Err(error)) => Err(SendFailure::Uncertain(error.into())),
            Err(elapsed) => Err(SendFailure::Uncertain(elapsed.into())),
        }
    }

    async fn address(&mut self, mail: &Mail) -> Result<(), SendFailure> {
        let away = |error: Error| SendFailure::Unavailable(error.into());
        self.0.command(MailFrom::new(Some(mail.from.clone()), Vec::new())).await.map_err(away)?;
        let to = Rcpt::new(mail.to.clone(), Vec::new());
        self.0.command(to).await.map_err(|error| match error {
            error if error.is_transient() || error.is_permanent() => {
                SendFailure::RecipientRejected { permanent: error.is_permanent(), cause: error.into() }
            }
            error => away(error),
        })?;
        self.0.command(Data).await.map_err(away)?;
        Ok(())
    }

    /// Says goodbye, if the server listens.
    pub async fn close(mut self) {
        let _ = timeout(GOODBYE_WITHIN, self.0.quit()).await;
    }
}
