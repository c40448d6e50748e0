//! Secrets: texts that `Debug` does not show, and settings without their secret part.

use std::fmt;

use url::Url;

use crate::domain::network::HostList;

/// Settings that may contain a secret. `PORCHLIGHT_X_FILE` may name a file that contains the value.
pub(super) const SECRETS: [&str; 3] = ["database_url", "ops_token", "smtp_url"];

const NOT_SHOWN: &str = "(not shown)";
/// Stands for a password in a URL.
const HIDDEN: &str = "***";

/// A text that `Debug` does not show.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// Returns the text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NOT_SHOWN)
    }
}

/// Whether a setting may contain a secret.
pub fn is_secret(name: &str) -> bool {
    SECRETS.contains(&name)
}

/// Returns the value of a setting without its secret part: passwords in URLs are replaced, and tokens are
/// hidden completely.
pub fn redacted(name: &str, value: &str) -> String {
    let is_file = value.starts_with("sqlite:");
    if !is_secret(name) || is_file {
        return value.to_owned();
    }
    let hosts = HostList::split(value).filter(|hosts| hosts.is_several());
    let shown = match hosts {
        Some(hosts) => hosts.urls().next().and_then(|first| {
            let first = without_password(&first)?;
            Some(HostList::split(&first)?.with_hosts_of(hosts))
        }),
        None => without_password(value),
    };
    shown.unwrap_or_else(|| NOT_SHOWN.to_owned())
}

/// Whether the value of this setting is or has a part that [`redacted`] hides.
pub(super) fn contains_secret(name: &str, value: &str) -> bool {
    let shown = redacted(name, value);
    shown == NOT_SHOWN || shown.contains(HIDDEN)
}

/// Returns `None` if the password cannot be identified with certainty.
fn without_password(url: &str) -> Option<String> {
    let mut url = Url::parse(url).ok().filter(Url::has_host)?;
    // The text before an @ may be a password that contains an unescaped `/`, `?` or `#`.
    let rest = [url.path(), url.query().unwrap_or_default(), url.fragment().unwrap_or_default()];
    if rest.iter().any(|part| part.contains('@')) {
        return None;
    }
    if url.password().is_some() {
        url.set_password(Some(HIDDEN)).ok()?;
    }
    let options: Vec<_> = url.query_pairs().into_owned().collect();
    if !options.is_empty() {
        let hidden = |name: &str| name.contains("pass") || name.contains("key");
        let options = options.iter().map(|(name, value)| (name, if hidden(name) { HIDDEN } else { value }));
        url.query_pairs_mut().clear().extend_pairs(options);
    }
    Some(url.to_string())
}

/// The variable that names a file with the value of this setting.
pub(super) fn secret_file_variable(name: &str) -> String {
    format!("PORCHLIGHT_{}_FILE", name.to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_shown_without_their_passwords() {
        for (value, expected) in [
            ("sqlite:/srv/a@b.db", "sqlite:/srv/a@b.db"),
            ("postgres://me@db.example/site", "postgres://me@db.example/site"),
            ("postgres://me:hunter2@db.example:5433/site", "postgres://me:***@db.example:5433/site"),
            (
                "postgres://db.example/site?user=me&password=hunter2&sslmode=require",
                "postgres://db.example/site?user=me&password=***&sslmode=require",
            ),
            ("postgres://me:hunter2@a:5432,b:5433/site?sslkey=b", "postgres://me:***@a:5432,b:5433/site?sslkey=***"),
            ("postgres://me:hunter2,x@a,b/site", "postgres://me:***@a,b/site"),
            ("postgres://me:1/hunter2,x@a,b/site", NOT_SHOWN),
            ("postgres://me:1/hunter2@db.example/site", NOT_SHOWN),
            ("postgres://me:1?hunter2@db.example/site", NOT_SHOWN),
            ("postgres://me:1#hunter2@db.example/site", NOT_SHOWN),
            ("postgres://me:hunter2@[/site", NOT_SHOWN),
            ("hunter2", NOT_SHOWN),
        ] {
            assert_eq!(redacted("database_url", value), expected);
        }
        assert_eq!(redacted("smtp_url", "smtps://me:hunter2@mail.example"), "smtps://me:***@mail.example");
        assert_eq!(redacted("ops_token", "hunter2-hunter2-hunter2"), NOT_SHOWN);
        assert_eq!(redacted("mail_from", "a@troupe.example"), "a@troupe.example");
    }
}
