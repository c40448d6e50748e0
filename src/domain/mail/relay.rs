//! The SMTP server of `smtp_url`, and how the connection to it is secured.

use std::fmt;

use percent_encoding::percent_decode_str;
use url::{Host, Url};

use crate::domain::network::{dial_host, is_loopback};
use crate::domain::parse::Invalid;

/// An SMTP server. Off this machine the connection is encrypted and verified, unless the URL ends in `?tls=off`, which
/// is never combined with a password.
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
    /// STARTTLS is used if the server offers it. Only for a server on this machine.
    StartTlsIfOffered,
    /// No encryption, as `?tls=off` demands.
    Off,
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

const SYNTAX: &str = "it is not of the form smtps://user:password@mail.example.com";
const MORE_THAN_HOST: &str = "it must end after the host and port, or with ?tls=off";
const LOGIN: &str = "user and password must both be given, with special characters percent-encoded (@ as %40)";

impl Relay {
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let url = Url::parse(text).map_err(|_| Invalid::new(SYNTAX))?;
        let tls = match url.scheme() {
            "smtps" => true,
            "smtp" => false,
            _ => return Err(Invalid::new("it must start with smtp:// or smtps://")),
        };
        let tls_off = match url.query() {
            None => false,
            Some("tls=off") => true,
            Some(_) => return Err(Invalid::new(MORE_THAN_HOST)),
        };
        if !matches!(url.path(), "" | "/") || url.fragment().is_some() {
            return Err(Invalid::new(MORE_THAN_HOST));
        }
        let host = url.host_str().and_then(|host| Host::parse(host).ok()).ok_or_else(|| Invalid::new(SYNTAX))?;
        let login = match (url.username(), url.password()) {
            ("", None) => None,
            (user, Some(password)) if !user.is_empty() && !password.is_empty() => {
                Some(Login { user: decoded(user)?, password: decoded(password)? })
            }
            _ => return Err(Invalid::new(LOGIN)),
        };
        let security = match (tls, tls_off) {
            (true, true) => {
                return Err(Invalid::new(
                    "smtps:// and ?tls=off contradict each other; use smtp:// for a connection without TLS",
                ));
            }
            (false, true) if login.is_some() => {
                return Err(Invalid::new(
                    "?tls=off would send the password unencrypted; remove ?tls=off, or user and password",
                ));
            }
            (false, true) => Security::Off,
            (true, false) => Security::Tls,
            (false, false) if is_trusted_local(&host) => Security::StartTlsIfOffered,
            (false, false) => Security::StartTls,
        };
        let port = url.port().unwrap_or(match (tls, &login) {
            (true, _) => 465,
            (false, Some(_)) => 587,
            (false, None) => 25,
        });
        Ok(Self { host, port, security, login })
    }

    /// The host to connect to. An IPv6 address has no brackets.
    pub fn host(&self) -> String {
        dial_host(&self.host)
    }

    pub const fn port(&self) -> u16 {
        self.port
    }

    pub const fn security(&self) -> Security {
        self.security
    }

    pub const fn login(&self) -> Option<&Login> {
        self.login.as_ref()
    }

    /// Describes how the connection is secured, for `check`.
    pub fn security_in_words(&self) -> &'static str {
        match (self.security, self.is_trusted_local()) {
            (Security::Tls, false) => "verified TLS",
            (Security::StartTls, _) => "verified TLS (STARTTLS)",
            (Security::Tls, true) => "TLS with any certificate, since it is on this machine",
            (Security::StartTlsIfOffered, _) => "TLS if the server offers it, since it is on this machine",
            (Security::Off, _) => "no TLS (`?tls=off`)",
        }
    }

    /// Whether the connection stays on this machine, so that any certificate is accepted.
    pub fn is_trusted_local(&self) -> bool {
        is_trusted_local(&self.host)
    }
}

/// Whether a connection to `host` stays on this machine. Names below `localhost` are not trusted: some
/// resolvers look them up in DNS, and the password could leave the machine.
pub fn is_trusted_local(host: &Host) -> bool {
    is_loopback(host) && !matches!(host, Host::Domain(name) if name != "localhost")
}

/// Shows neither user nor password.
impl fmt::Display for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

fn decoded(text: &str) -> Result<String, Invalid> {
    let text = percent_decode_str(text).decode_utf8().map_err(|_| Invalid::new(LOGIN))?;
    if text.contains(char::is_control) {
        return Err(Invalid::new(LOGIN));
    }
    Ok(text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_encrypted_unless_it_stays_on_this_machine_or_the_url_says_so() {
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
            ("smtp://localhost", Security::StartTlsIfOffered, 25),
            ("smtp://mail.example", Security::StartTls, 25),
            ("smtp://192.168.0.1", Security::StartTls, 25),
            ("smtp://mail.localhost", Security::StartTls, 25),
            ("smtp://mail.example?tls=off", Security::Off, 25),
            ("smtp://mail.example:2525/?tls=off", Security::Off, 2525),
            ("smtp://127.0.0.1?tls=off", Security::Off, 25),
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
            ("mail.example", SYNTAX),
            ("smtp://", SYNTAX),
            ("https://mail.example", "it must start with"),
            ("smtps://mail.example/path", MORE_THAN_HOST),
            ("smtp://mail.example?tls=on", MORE_THAN_HOST),
            ("smtp://mail.example?tls=off&x=1", MORE_THAN_HOST),
            ("smtps://mail.example?tls=off", "smtps:// and ?tls=off contradict"),
            ("smtp://u:p@mail.example?tls=off", "?tls=off would send the password"),
            ("smtp://u:p@localhost?tls=off", "?tls=off would send the password"),
            ("smtps://user@mail.example", LOGIN),
            ("smtps://:password@mail.example", LOGIN),
            ("smtps://user:a%0D%0Ab@mail.example", LOGIN),
        ] {
            assert!(Relay::parse(url).unwrap_err().to_string().starts_with(error), "{url}");
        }
    }
}
