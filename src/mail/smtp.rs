//! SMTP sessions: one connection for several emails, with a timeout for each phase.
//!
//! Failures are classified by what they mean for the mail: it was certainly not delivered, or that is uncertain.

use std::error::Error as _;
use std::time::Duration;
use std::{fmt, io};

use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail as MailFrom, Rcpt};
use lettre::transport::smtp::extension::ClientId;
use tokio::net::TcpStream;
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use super::compose::{Mail, Mailer};
use super::line_stream::LineStream;
use crate::domain::letters::is_mailbox_rejection;
use crate::domain::limits::MAX_SMTP_FAILURE_CHARS;
use crate::domain::mail::Security;
use crate::domain::text::excerpt;

/// For connecting, TLS and authentication.
const CONNECT_TIMEOUT: Duration = Duration::from_mins(1);
/// For `MAIL FROM`, `RCPT TO` and `DATA`.
const ENVELOPE_TIMEOUT: Duration = Duration::from_mins(1);
/// For the content and the server's reply to it. A server may scan a mail for minutes; giving up early would deliver it
/// twice.
const CONTENT_TIMEOUT: Duration = Duration::from_mins(5);
const QUIT_TIMEOUT: Duration = Duration::from_secs(2);

const NO_STARTTLS: &str = "it offers no TLS, which `smtp_url` requires off this machine; `?tls=off` at its end sends mail \
                           unencrypted, without a password";

/// Why a mail was not sent.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SendFailure {
    /// The server cannot be reached, or accepts nothing from us. The content was not sent.
    #[error("the mail server is unavailable: {0}")]
    Unavailable(FailureCause),
    /// The server rejected the recipient, for now or permanently. The content was not sent.
    #[error("the mail server rejected a recipient: {cause}")]
    RecipientRejected { permanent: bool, cause: FailureCause },
    /// The server rejected the content, for now or permanently.
    #[error("the mail server rejected a mail: {cause}")]
    MessageRejected { permanent: bool, cause: FailureCause },
    /// The connection broke before the server replied to the content: the mail may have been delivered.
    #[error("the connection broke while a mail was being sent: {0}")]
    Uncertain(FailureCause),
}

/// The cause of a failure. `Display` shows nothing that the server wrote but the code of its reply, because the text may contain
/// addresses.
#[derive(Clone, Debug)]
pub struct FailureCause {
    /// The full text, for the makers only. It has no control characters.
    pub detail: String,
    /// Whether it will be the same the next time, until somebody changes a setting.
    pub is_permanent: bool,
    /// What may be logged, if not all of it.
    loggable: Option<String>,
    /// The text of the server's reply, without the code.
    reply: Option<String>,
}

impl SendFailure {
    /// The cause, if the server rejected the recipient or the content permanently.
    pub fn permanent_rejection(&self) -> Option<&FailureCause> {
        match self {
            Self::RecipientRejected { permanent: true, cause } | Self::MessageRejected { permanent: true, cause } => {
                Some(cause)
            }
            _ => None,
        }
    }

    /// Whether the mailbox itself is permanently rejected, see [`is_mailbox_rejection`].
    pub fn is_mailbox_rejection(&self) -> bool {
        let reply = self.permanent_rejection().and_then(|cause| cause.reply.as_deref());
        reply.is_some_and(is_mailbox_rejection)
    }

    /// The full text, for the makers only.
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
        f.write_str(self.loggable.as_deref().unwrap_or(&self.detail))
    }
}

impl From<Error> for FailureCause {
    fn from(error: Error) -> Self {
        let code = error.status();
        let loggable = match code {
            Some(code) => Some(format!("it replied {code}")),
            None => error.is_response().then(|| "its reply is not one of SMTP".to_owned()),
        };
        // The source of an error with a code is the reply, its lines joined by spaces.
        let reply = code.and_then(|_| error.source()).map(ToString::to_string);
        let tls_error = tls_error(&error);
        let is_wrong_tls =
            matches!(tls_error, Some(rustls::Error::InvalidCertificate(_) | rustls::Error::InvalidMessage(_)));
        let is_permanent = error.is_permanent() || is_wrong_tls;
        let detail = match tls_error {
            Some(rustls::Error::InvalidCertificate(_)) => {
                format!("its certificate is not trusted by this system, which `smtp_url` requires ({error})")
            }
            Some(rustls::Error::InvalidMessage(_)) => format!(
                "it sent something that is not TLS where TLS had to begin: the port may be one for smtp:// instead of smtps://, or \
                 somebody on the path interferes ({error})"
            ),
            _ => error.to_string(),
        };
        Self { detail: excerpt(&detail, MAX_SMTP_FAILURE_CHARS), is_permanent, loggable, reply }
    }
}

/// Why TLS failed, if it did.
fn tls_error(error: &Error) -> Option<&rustls::Error> {
    let mut source = error.source();
    while let Some(cause) = source {
        let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let tls = inner.and_then(|inner| inner.downcast_ref()).or_else(|| cause.downcast_ref());
        if tls.is_some() {
            return tls;
        }
        source = cause.source();
    }
    None
}

impl FailureCause {
    /// A cause that is not a reply of the server.
    pub fn new(detail: &str) -> Self {
        Self { detail: detail.to_owned(), is_permanent: false, loggable: None, reply: None }
    }
}

/// The connection could not be opened.
impl From<io::Error> for FailureCause {
    fn from(error: io::Error) -> Self {
        Self::new(&format!("Connection error: {error}"))
    }
}

impl From<Elapsed> for FailureCause {
    fn from(_: Elapsed) -> Self {
        Self::new("it did not respond in time")
    }
}

/// The content of a mail with its end, as one command. lettre's own function writes the end separately, and TCP holds that
/// back until the server has acknowledged the rest, which it may delay for 40 milliseconds.
struct Content<'a>(&'a Mail);

impl fmt::Display for Content<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The first line is a header, so it has no dot to double.
        let text = String::from_utf8_lossy(&self.0.bytes).replace("\r\n.", "\r\n..");
        write!(f, "{text}\r\n.\r\n")
    }
}

/// An open SMTP session.
pub struct SmtpConnection(AsyncSmtpConnection);

/// lettre's connection has no `Debug`.
impl fmt::Debug for SmtpConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SmtpConnection")
    }
}

impl Mailer {
    /// Connects to the mail server and authenticates if the settings have credentials.
    pub async fn connect(&self) -> Result<SmtpConnection, SendFailure> {
        match timeout(CONNECT_TIMEOUT, self.open()).await {
            Ok(Ok(opened)) => Ok(SmtpConnection(opened)),
            Ok(Err(cause)) => Err(SendFailure::Unavailable(cause)),
            Err(elapsed) => Err(SendFailure::Unavailable(elapsed.into())),
        }
    }

    /// Connects, unless there is a connection.
    pub async fn ensure_connected(&self, connection: &mut Option<SmtpConnection>) -> Result<(), SendFailure> {
        if connection.is_none() {
            *connection = Some(self.connect().await?);
        }
        Ok(())
    }

    /// Sends a mail over the connection, or over a new one if there is none. A failure ends the connection.
    pub async fn send_over(&self, connection: &mut Option<SmtpConnection>, mail: &Mail) -> Result<(), SendFailure> {
        let mut open = match connection.take() {
            Some(open) => open,
            None => self.connect().await?,
        };
        open.send(mail).await?;
        *connection = Some(open);
        Ok(())
    }

    async fn open(&self) -> Result<AsyncSmtpConnection, FailureCause> {
        let relay = &self.relay;
        let client_id = ClientId::Domain(self.domain.clone());
        let server = (relay.host(), relay.port());
        let mut smtp = if relay.security() == Security::Tls {
            let (tls, limit) = (self.tls()?, Some(CONNECT_TIMEOUT));
            AsyncSmtpConnection::connect_tokio1(server, limit, &client_id, Some(tls), None).await?
        } else {
            let stream = LineStream::new(TcpStream::connect(server).await?);
            AsyncSmtpConnection::connect_with_transport(Box::new(stream), &client_id).await?
        };
        let use_starttls = match relay.security() {
            Security::Tls | Security::Off => false,
            Security::StartTls if !smtp.can_starttls() => {
                return Err(FailureCause { is_permanent: true, ..FailureCause::new(NO_STARTTLS) });
            }
            Security::StartTls => true,
            Security::StartTlsIfOffered => smtp.can_starttls(),
        };
        if use_starttls {
            smtp.starttls(self.tls()?, &client_id).await?;
        }
        if let Some(login) = relay.login() {
            let credentials = Credentials::new(login.user.clone(), login.password.clone());
            smtp.auth(DEFAULT_MECHANISMS, &credentials).await?;
        }
        Ok(smtp)
    }

    /// Verifies the certificate against the system's trust store, unless the server is on this host.
    fn tls(&self) -> Result<TlsParameters, Error> {
        let is_trusted_local = self.relay.is_trusted_local();
        TlsParameters::builder(self.relay.host())
            .dangerous_accept_invalid_certs(is_trusted_local)
            .dangerous_accept_invalid_hostnames(is_trusted_local)
            .build()
    }
}

impl SmtpConnection {
    /// Sends a mail. After a failure the connection must not be used again.
    pub async fn send(&mut self, mail: &Mail) -> Result<(), SendFailure> {
        match timeout(ENVELOPE_TIMEOUT, self.send_envelope(mail)).await {
            Ok(result) => result?,
            Err(elapsed) => return Err(SendFailure::Unavailable(elapsed.into())),
        }
        match timeout(CONTENT_TIMEOUT, self.0.command(Content(mail))).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) if error.is_transient() || error.is_permanent() => {
                Err(SendFailure::MessageRejected { permanent: error.is_permanent(), cause: error.into() })
            }
            Ok(Err(error)) => Err(SendFailure::Uncertain(error.into())),
            Err(elapsed) => Err(SendFailure::Uncertain(elapsed.into())),
        }
    }

    async fn send_envelope(&mut self, mail: &Mail) -> Result<(), SendFailure> {
        let unavailable = |error: Error| SendFailure::Unavailable(error.into());
        let is_rejection = |error: &Error| error.is_transient() || error.is_permanent();
        self.0.command(MailFrom::new(Some(mail.from.clone()), Vec::new())).await.map_err(unavailable)?;
        let to = Rcpt::new(mail.to.clone(), Vec::new());
        self.0.command(to).await.map_err(|error| match error {
            error if is_rejection(&error) => {
                SendFailure::RecipientRejected { permanent: error.is_permanent(), cause: error.into() }
            }
            error => unavailable(error),
        })?;
        self.0.command(Data).await.map_err(|error| match error {
            error if is_rejection(&error) => {
                SendFailure::MessageRejected { permanent: error.is_permanent(), cause: error.into() }
            }
            error => unavailable(error),
        })?;
        Ok(())
    }

    /// Ends the session with `QUIT`.
    pub async fn close(mut self) {
        let _ = timeout(QUIT_TIMEOUT, self.0.quit()).await;
    }
}
