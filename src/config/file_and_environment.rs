//! Merges the settings of the command line, the environment and the file, and warns about secrets that other users of this machine
//! can read. Reads the variables of the service manager and of tests, too.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use toml::Spanned;
use toml::de::DeTable;

use super::secret::{SECRETS, contains_secret, secret_file_variable};
use super::setting_names::{RawSettings, named, names};
use super::text::{InvalidSettings, switch_text};
use crate::domain::text::{did_you_mean, line_at};

/// The first of these that exists is read if no other is given. The second one belongs to the Debian package.
const DEFAULT_FILES: [&str; 2] = ["porchlight.toml", "/etc/porchlight/porchlight.toml"];

/// The text of a setting, and where it is set.
#[derive(Clone, PartialEq, Eq)]
pub struct ResolvedSetting {
    pub value: String,
    pub origin: Origin,
}

/// Where a setting is set. `Display` names the flag, the environment variable or the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Flag(String),
    Variable(String),
    /// A file that holds one secret, and the variable that names it.
    SecretFile {
        variable: String,
        path: PathBuf,
    },
    File(PathBuf),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) | Self::Variable(name) | Self::SecretFile { variable: name, .. } => f.write_str(name),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// Leaves out the value, which may be a secret.
impl fmt::Debug for ResolvedSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResolvedSetting").field("origin", &self.origin).finish_non_exhaustive()
    }
}

impl ResolvedSetting {
    /// Merges the settings. `arguments`, which `clap` has read from flags and the environment, override
    /// the file.
    pub fn resolve(file: Option<&Path>, arguments: &RawSettings) -> Result<BTreeMap<String, Self>, InvalidSettings> {
        let mut settings = BTreeMap::new();
        if let Some(path) = settings_file(file) {
            let origin = Origin::File(path.to_owned());
            let folder = path.parent().unwrap_or(Path::new(""));
            settings.extend(read_file(path)?.into_iter().map(|(name, value)| {
                let value = below(folder, &name, value);
                (name, Self { value, origin: origin.clone() })
            }));
        }
        for (name, value) in named(arguments) {
            let variable = format!("PORCHLIGHT_{}", name.to_uppercase());
            // `clap` does not say which of the two it read. A flag with the value of the variable counts as the variable.
            let origin = match environment(&variable) {
                Some(text) if text == value => Origin::Variable(variable),
                _ => Origin::Flag(format!("--{}", name.replace('_', "-"))),
            };
            settings.insert(name, Self { value, origin });
        }
        for name in SECRETS {
            let variable = secret_file_variable(name);
            if let Some(path) = environment(&variable) {
                if named(arguments).iter().any(|(argument, _)| argument == name) {
                    return Err(InvalidSettings::new(
                        name,
                        format!("it is set directly and by {variable}; remove one"),
                    ));
                }
                let secret = std::fs::read_to_string(&path).map_err(|error| {
                    InvalidSettings::new(name, format!("{path}, named by {variable}, could not be read: {error}"))
                })?;
                let value = secret.trim_end().to_owned();
                settings.insert(
                    name.to_owned(),
                    Self { value, origin: Origin::SecretFile { variable, path: path.into() } },
                );
            }
        }
        Ok(settings)
    }
}

/// Returns the settings file: the named one, or a default one that exists.
pub(super) fn settings_file(named: Option<&Path>) -> Option<&Path> {
    named.or_else(|| DEFAULT_FILES.iter().map(Path::new).find(|file| file.exists()))
}

/// Settings whose value is a path.
const PATHS: [&str; 7] = ["acme_ca_file", "data_dir", "dkim_key", "releases_dir", "site_dir", "tls_cert", "tls_key"];

/// A path in a settings file is relative to the folder of that file.
fn below(folder: &Path, name: &str, value: String) -> String {
    let joined = |path: &str| folder.join(path).components().collect::<PathBuf>().display().to_string();
    match value.strip_prefix("sqlite:") {
        Some(path) if name == "database_url" => format!("sqlite:{}", joined(path.strip_prefix("//").unwrap_or(path))),
        _ if PATHS.contains(&name) => joined(&value),
        _ => value,
    }
}

fn read_file(path: &Path) -> Result<Vec<(String, String)>, InvalidSettings> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        let hint = match error.kind() {
            std::io::ErrorKind::PermissionDenied => {
                " Run this as the user that runs the service, or name another file with `--config`."
            }
            _ => "",
        };
        InvalidSettings(format!("The settings file {shown} could not be read: {error}.{hint}"))
    })?;
    let table: toml::Table = text.parse().map_err(|error| {
        InvalidSettings(format!("The settings file {shown} is not TOML: {}.", syntax_error(&error, &text)))
    })?;
    let known = names();
    let unknown = |name: &str| {
        let keys = DeTable::parse(&text).map(Spanned::into_inner).unwrap_or_default();
        let place = keys.keys().find(|key| key.get_ref() == name).map_or(0, |key| key.span().start);
        InvalidSettings(format!(
            "The settings file {shown} has an unknown setting `{name}` in line {}.{} `porchlight config example` prints every \
             setting.",
            line_at(&text, place),
            did_you_mean(name, known.iter().map(String::as_str)),
        ))
    };
    table
        .into_iter()
        .map(|(name, value)| {
            if !known.contains(&name) {
                return Err(unknown(&name));
            }
            let text = match &value {
                toml::Value::Boolean(value) => switch_text(&name, *value).map(ToOwned::to_owned),
                value => as_text(value),
            };
            let text = text.ok_or_else(|| InvalidSettings::new(&name, "it is not a string, a number or a list"))?;
            Ok((name, text))
        })
        .collect()
}

/// Describes a syntax error without quoting the line, which may contain a secret. Keys are safe to quote.
fn syntax_error(error: &toml::de::Error, text: &str) -> String {
    let message = error.message();
    let Some(span) = error.span() else { return message.to_owned() };
    let line = line_at(text, span.start);
    match text.get(span) {
        Some(key) if message == "duplicate key" => format!("line {line} sets `{}` again", key.trim()),
        _ => format!("line {line}, {message}"),
    }
}

/// Converts a TOML value to the text of a setting. A list becomes comma-separated.
fn as_text(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Array(items) => items.iter().map(as_text).collect::<Option<Vec<_>>>().map(|items| items.join(",")),
        _ => None,
    }
}

/// The time at which a test starts this process, in Unix milliseconds: not a setting, and not in a release build.
#[cfg(debug_assertions)]
pub(crate) fn test_now() -> Option<i64> {
    environment("PORCHLIGHT_TEST_NOW")?.parse().ok()
}

/// Panics if a test has planted a panic at this place: not a setting, and nothing in a release build.
pub(crate) fn test_panic(place: &str) {
    if cfg!(debug_assertions) {
        assert_ne!(environment("PORCHLIGHT_TEST_PANIC").as_deref(), Some(place), "planted");
    }
}

/// Returns a warning for each variable that looks like a setting and is none.
pub(super) fn unknown_variables() -> Vec<String> {
    let named = names().into_iter().chain(["config".to_owned(), "move_to".to_owned()]);
    let mut known: Vec<_> = named.map(|name| format!("PORCHLIGHT_{}", name.to_uppercase())).collect();
    known.extend(SECRETS.map(secret_file_variable));
    let set = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let unknown = set.filter(|name| {
        name.starts_with("PORCHLIGHT_") && !name.starts_with("PORCHLIGHT_TEST_") && !known.contains(name)
    });
    unknown
        .map(|name| {
            let meant = did_you_mean(&name, known.iter().map(String::as_str));
            format!("The variable {name} in the environment is not a setting, and is ignored.{meant}")
        })
        .collect()
}

/// The names of the sockets that a service manager such as systemd passes on, in their order.
pub(crate) fn socket_names() -> Vec<String> {
    let names = environment("LISTEN_FDNAMES").unwrap_or_default();
    names.split(':').map(str::to_owned).collect()
}

/// Where the service manager wants to be told about the state of the service.
pub(crate) fn notify_socket() -> Option<String> {
    environment("NOTIFY_SOCKET").filter(|path| !path.is_empty())
}

#[expect(clippy::disallowed_methods, reason = "the only place that may read the environment")]
pub(super) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Settings whose value is the path of a file with a private key.
const KEY_FILES: [&str; 2] = ["dkim_key", "tls_key"];

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
    allows_others(file, READ).then(|| format!("{warning} `{name}` in {0}. Run `chmod o= {0}`.", file.display()))
}

/// Returns a warning if other users of this machine can write to the folder of a setting, if it exists.
pub(super) fn writable_folder(name: &str, folder: &Path) -> Option<String> {
    let warning = "Every user of this machine can add and replace files in the folder of";
    allows_others(folder, WRITE).then(|| format!("{warning} `{name}`. Run `chmod o-w {}`.", folder.display()))
}

const READ: u32 = 0o004;
const WRITE: u32 = 0o002;
const ENTER: u32 = 0o001;

/// Whether users other than the owner and the group can do this to the file or folder, and may enter all folders above it.
fn allows_others(path: &Path, bit: u32) -> bool {
    let allows = |path: &Path, bit: u32| fs::metadata(path).is_ok_and(|file| file.permissions().mode() & bit != 0);
    fs::canonicalize(path)
        .is_ok_and(|path| allows(&path, bit) && path.ancestors().skip(1).all(|folder| allows(folder, ENTER)))
}
