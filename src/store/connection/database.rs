//! Which database to use, as `database_url` names it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::hosts::Hosts;
use super::postgres_tls::PostgresTls;
use crate::config::{InvalidSettings, Settings};

/// Which database to use.
#[derive(Clone)]
pub enum Database {
    Sqlite(PathBuf),
    Postgres(Arc<Hosts>),
}

impl Database {
    /// Returns the database of `database_url`, or SQLite in `data_dir`.
    pub fn from_settings(settings: &Settings) -> Result<Self, InvalidSettings> {
        match &settings.database_url {
            Some(url) => Self::parse(url.expose()).map_err(|why| InvalidSettings::new("database_url", why)),
            None => Ok(Self::Sqlite(settings.data_dir.join("porchlight.db"))),
        }
    }

    pub fn parse(url: &str) -> Result<Self, String> {
        if let Some(path) = url.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() {
                return Err("it names no file after sqlite:".to_owned());
            }
            if path.contains('?') {
                return Err("it has parameters after ?, which are not supported; name only the file".to_owned());
            }
            return Ok(Self::Sqlite(path.into()));
        }
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Ok(Self::Postgres(Arc::new(Hosts::parse(url)?)));
        }
        Err("it has to start with sqlite: or postgres://".to_owned())
    }

    pub fn has_several_hosts(&self) -> bool {
        matches!(self, Self::Postgres(hosts) if hosts.is_several())
    }

    /// What protects the connections. SQLite has none.
    pub fn tls(&self) -> Option<PostgresTls> {
        match self {
            Self::Sqlite(_) => None,
            Self::Postgres(hosts) => hosts.tls(),
        }
    }
}

/// The connect options would show the password.
impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Database({self})")
    }
}

/// Leaves out user and password.
impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "SQLite, {}", path.display()),
            Self::Postgres(hosts) => hosts.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn parameters_of_a_sqlite_url_are_refused() {
        assert!(
            matches!(Database::parse("sqlite:porchlight.db"), Ok(Database::Sqlite(path)) if path == Path::new("porchlight.db"))
        );
        for url in ["sqlite:porchlight.db?mode=rw", "sqlite:///srv/porchlight.db?cache=shared", "sqlite:"] {
            assert!(Database::parse(url).is_err(), "{url}");
        }
    }
}
