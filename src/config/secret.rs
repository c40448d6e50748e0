//! Secrets: texts that `Debug` does not show, settings without their secret part, and warnings about places where other users
//! can read one.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use url::Url;

use super::resolve::{Origin, ResolvedSetting, is_secret};
use crate::domain::host_name::HostList;

/// Settings whose value is the path of a file with a private key.
const KEY_FILES: [&str; 2] = ["dkim_key", "tls_key"];

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
fn contains_secret(name: &str, value: &str) -> bool {
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

/// Returns a warning for each secret that other users of this machine can read.
pub(super) fn exposed_secrets(settings: &BTreeMap<String, ResolvedSetting>) -> Vec<String> {
    settings.iter().filter_map(|(name, setting)| exposure(name, setting)).collect()
}

fn exposure(name: &str, ResolvedSetting { value, origin }: &ResolvedSetting) -> Option<String> {
    let file = match origin {
        _ if KEY_FILES.contains(&name) => Path::new(value),
        _ if !contains_secret(name, value) => return None,
        Origin::Flag(flag) => {
            return Some(format!(
                "`{flag}` contains a secret, and `ps` shows it to every user of this machine. Put it in a file, and set \
                 {} to the path of that file.",
                secret_file_variable(name)
            ));
        }
        Origin::File(path) | Origin::SecretFile { path, .. } => path,
        Origin::Variable(_) => return None,
    };
    let warning = "Every user of this machine can read the secret";
    is_readable_by_others(file).then(|| format!("{warning} `{name}` in {0}. Run `chmod o= {0}`.", file.display()))
}

/// The variable that names a file with the value of this setting.
pub(super) fn secret_file_variable(name: &str) -> String {
    format!("PORCHLIGHT_{}_FILE", name.to_uppercase())
}

/// Whether users other than the owner and the group can read the file, and may enter all folders above it.
fn is_readable_by_others(path: &Path) -> bool {
    const READ: u32 = 0o004;
    const ENTER: u32 = 0o001;
    let allows = |path: &Path, bit: u32| fs::metadata(path).is_ok_and(|file| file.permissions().mode() & bit != 0);
    fs::canonicalize(path)
        .is_ok_and(|path| allows(&path, READ) && path.ancestors().skip(1).all(|folder| allows(folder, ENTER)))
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
