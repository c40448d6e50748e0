//! How connections to PostgreSQL are protected: by `sslmode` in `database_url`, and without it by where the server is.

use sqlx::postgres::{PgConnectOptions, PgSslMode};
use url::{Host, Url};

use crate::domain::mail::is_trusted_local;
use crate::domain::parse::word_enum;

word_enum! {
    /// What protects the connections to a PostgreSQL server, from the most to the least.
    #[derive(PartialOrd, Ord)]
    pub enum PostgresTls {
        /// The server is on loopback or a Unix socket: nothing leaves this machine.
        Local = "on this machine",
        Verified = "verified TLS",
        /// The certificate may be for another host.
        NameNotVerified = "TLS, host name not verified",
        /// Anyone on the network path can present a certificate.
        NotVerified = "TLS, certificate not verified",
        Off = "not encrypted",
    }
}

impl PostgresTls {
    pub(in crate::store) fn of(options: &PgConnectOptions) -> Self {
        if is_local(options) {
            return Self::Local;
        }
        match options.get_ssl_mode() {
            PgSslMode::VerifyFull => Self::Verified,
            PgSslMode::VerifyCa => Self::NameNotVerified,
            PgSslMode::Require => Self::NotVerified,
            PgSslMode::Disable | PgSslMode::Allow | PgSslMode::Prefer => Self::Off,
        }
    }

    /// Returns what an attacker on the network path could do, and how to prevent it.
    pub const fn risk(self) -> Option<&'static str> {
        match self {
            Self::Local | Self::Verified => None,
            Self::NameNotVerified => Some(
                "With `sslmode=verify-ca` another server with a certificate of the same authority could take its place. \
                 Leave `sslmode` out of `database_url` to verify the name too.",
            ),
            Self::NotVerified => Some(
                "With `sslmode=require` anyone on the network path could pose as the server. Leave `sslmode` out of \
                 `database_url`, and name the authority by `sslrootcert` if the system does not trust it.",
            ),
            Self::Off => Some(
                "With `sslmode=disable` anyone on the network path can read and change everything, unless the network itself \
                 is encrypted.",
            ),
        }
    }
}

/// Verifies certificates of servers on other machines, unless `sslmode` in the URL says otherwise.
pub(in crate::store) fn protect(options: PgConnectOptions, url: &str) -> Result<PgConnectOptions, String> {
    // TLS needs an IPv6 address without the brackets of a URL.
    let host = options.get_host().trim_matches(['[', ']']).to_owned();
    let options = options.host(&host);
    if is_local(&options) {
        return Ok(options);
    }
    let has_mode = Url::parse(url)
        .is_ok_and(|url| url.query_pairs().any(|(name, _)| matches!(name.as_ref(), "sslmode" | "ssl-mode")));
    match options.get_ssl_mode() {
        // The environment can set a mode too, which is not a decision about this server.
        _ if !has_mode => Ok(options.ssl_mode(PgSslMode::VerifyFull)),
        PgSslMode::Allow | PgSslMode::Prefer => {
            Err("its `sslmode` allows a connection without TLS, and the server is on another machine; leave it out to \
                 verify the certificate, or choose `require` or `disable`"
                .to_owned())
        }
        _ => Ok(options),
    }
}

fn is_local(options: &PgConnectOptions) -> bool {
    let host = options.get_host();
    let is_socket = options.get_socket().is_some() || host.starts_with('/');
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    is_socket || Host::parse(&host).is_ok_and(|host| is_trusted_local(&host))
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use super::*;

    fn protected(url: &str) -> Result<PostgresTls, String> {
        protect(PgConnectOptions::from_str(url).unwrap(), url).map(|options| PostgresTls::of(&options))
    }

    #[test]
    fn a_server_on_this_machine_needs_no_tls() {
        for host in ["127.0.0.1", "127.8.8.8:5433", "localhost", "LOCALHOST", "[::1]", "%2Frun%2Fpostgresql"] {
            for mode in ["", "?sslmode=disable", "?sslmode=prefer"] {
                let url = format!("postgres://me@{host}/site{mode}");
                assert_eq!(protected(&url), Ok(PostgresTls::Local), "{url}");
            }
        }
        assert_eq!(protected("postgres:///site?host=/run/postgresql"), Ok(PostgresTls::Local));
    }

    #[test]
    fn any_other_server_is_verified_unless_the_url_says_otherwise() {
        for host in
            ["db.example", "10.0.0.1", "0.0.0.0", "[fd00::2]", "localhost.example", "db.localhost", "127.0.0.1.example"]
        {
            for (mode, expected) in [
                ("", PostgresTls::Verified),
                ("?sslrootcert=/a.pem", PostgresTls::Verified),
                ("?sslmode=verify-full", PostgresTls::Verified),
                ("?sslmode=verify-ca", PostgresTls::NameNotVerified),
                ("?sslmode=require", PostgresTls::NotVerified),
                ("?sslmode=disable", PostgresTls::Off),
            ] {
                let url = format!("postgres://me:secret@{host}/site{mode}");
                assert_eq!(protected(&url), Ok(expected), "{url}");
                assert_eq!(expected.risk().is_none(), expected == PostgresTls::Verified);
            }
            for mode in ["allow", "prefer"] {
                let why = protected(&format!("postgres://me:secret@{host}/site?sslmode={mode}")).unwrap_err();
                assert!(why.contains("`sslmode`") && !why.contains("secret"), "{why}");
            }
        }
        assert_eq!(protected("postgres://me@127.0.0.1/site?host=db.example"), Ok(PostgresTls::Verified));
    }
}
