//! The SMTP server of `smtp_url`, and how the connection to it is secured.

use std::fmt;

use percent_encoding::percent_decode_str;
use url::{Host, Url};

use super::base_url::{dial_host, is_loopback};

/// An SMTP server. Its password is never sent unencrypted over a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relay {
    host: Host,
    port: u16,
    security: Security,
    login: Option<Login>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// TLS from the start of the connection.
    Tls,
    /// STARTTLS is required.
    StartTls,
    /// STARTTLS is used if the server offers it.
    StartTlsIfOffered,
}

#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    pub user: String,
    pub password: String,
}

/// Does not reveal the password.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRelay {
    #[error("it is not of the form smtps://user:password@mail.example.com")]
    Syntax,
    #[error("it must start with smtp:// or smtps://")]
    Scheme,
    #[error("it must end after the host and port")]
    MoreThanHost,
    #[error("user and password must both be given, with special characters percent-encoded (@ as %40)")]
    Login,
}

impl Relay {
    /// # Errors
    /// Fails if `text` is not an SMTP URL. The error does not quote the text, which may hold a password.
    pub fn parse(text: &str) -> Result<Self, InvalidRelay> {
        let url = Url::parse(text).map_err(|_| InvalidRelay::Syntax)?;
        let tls = match url.scheme() {
            "smtps" => true,
            "smtp" => false,
            _ => return Err(InvalidRelay::Scheme),
        };
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err(InvalidRelay::MoreThanHost);
        }
        let host = url.host_str().and_then(|host| Host::parse(host).ok()).ok_or(InvalidRelay::Syntax)?;
        let login = match (url.username(), url.password()) {
            ("", None) => None,
            (user, Some(password)) if !user.is_empty() && !password.is_empty() => {
                Some(Login { user: decoded(user)?, password: decoded(password)? })
            }
            _ => return Err(InvalidRelay::Login),
        };
        let security = match (tls, &login) {
            (true, _) => Security::Tls,
            (false, Some(_)) if !is_trusted_local(&host) => Security::StartTls,
            (false, _) => Security::StartTlsIfOffered,
        };
        let port = url.port().unwrap_or(match (tls, &login) {
            (true, _) => 465,
            (false, Some(_)) => 587,
            (false, None) => 25,
        });
        Ok(Self { host, port, security, login })
    }

    /// The host to connect to. An IPv6 address has no brackets.
    #[must_use]
    pub fn host(&self) -> String {
        dial_host(&self.host)
    }

    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    #[must_use]
    pub const fn security(&self) -> Security {
        self.security
    }

    #[must_use]
    pub const fn login(&self) -> Option<&Login> {
        self.login.as_ref()
    }

    /// Whether the connection stays on this machine, so that any certificate is accepted.
    #[must_use]
    pub fn is_trusted_local(&self) -> bool {
        is_trusted_local(&self.host)
    }
}

/// Whether a connection to `host` stays on this machine. Names below `localhost` are not trusted: some
/// resolvers look them up in DNS, and the password could leave the machine.
#[must_use]
pub fn is_trusted_local(host: &Host) -> bool {
    is_loopback(host) && !matches!(host, Host::Domain(name) if name != "localhost")
}

/// Shows neither user nor password.
impl fmt::Display for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

fn decoded(text: &str) -> Result<String, InvalidRelay> {
    let text = percent_decode_str(text).decode_utf8().map_err(|_| InvalidRelay::Login)?;
    if text.contains(char::is_control) {
        return Err(InvalidRelay::Login);
    }
    Ok(text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_encrypted_or_stays_on_this_machine() {
        for (url, security, port) in [
            ("smtps://u:p@mail.example", Security::Tls, 465),
            ("smtps://mail.example:4650", Security::Tls, 4650),
            ("smtp://u:p@mail.example", Security::StartTls, 587),
            ("smtp://u:p@mail.example:25", Security::StartTls, 25),
            ("smtp://u:p@192.168.0.1", Security::StartTls, 587),
            ("smtp://u:p@[2001:db8::1]", Security::StartTls, 587),
            ("smtp://u:p@localhost.example", Security::StartTls, 587),
            ("smtp://u:p@mail.localhost", Security::StartTls, 587),
            ("smtp://u:p@localhost", Security::StartTlsIfOffered, 587),
            ("smtp://u:p@127.0.0.1:2525", Security::StartTlsIfOffered, 2525),
            ("smtp://u:p@[::1]", Security::StartTlsIfOffered, 587),
            ("smtp://mail.example", Security::StartTlsIfOffered, 25),
        ] {
            let relay = Relay::parse(url).unwrap();
            assert_eq!((relay.security(), relay.port()), (security, port), "{url}");
        }
    }

    #[test]
    fn user_and_password_are_percent_decoded() {
        let relay = Relay::parse("smtps://me%40mail.example:p%2F%3A%25%20w@mail.example").unwrap();
        let login = relay.login().unwrap();
        assert_eq!((login.user.as_str(), login.password.as_str()), ("me@mail.example", "p/:% w"));
        assert_eq!(relay.to_string(), "mail.example:465");
        assert!(!format!("{relay:?}").contains("p/:"), "{relay:?}");
    }

    #[test]
    fn invalid_urls_are_rejected() {
        for (url, error) in [
            ("mail.example", InvalidRelay::Syntax),
            ("smtp://", InvalidRelay::Syntax),
            ("https://mail.example", InvalidRelay::Scheme),
            ("smtps://mail.example/path", InvalidRelay::MoreThanHost),
            ("smtps://mail.example?tls=off", InvalidRelay::MoreThanHost),
            ("smtps://user@mail.example", InvalidRelay::Login),
            ("smtps://:password@mail.example", InvalidRelay::Login),
            ("smtps://user:a%0D%0Ab@mail.example", InvalidRelay::Login),
        ] {
            assert_eq!(Relay::parse(url), Err(error), "{url}");
        }
    }
}
