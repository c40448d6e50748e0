//! Secrets: texts that `Debug` does not show, and warnings about places where other users can read them.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::redact::contains_secret;
use super::resolve::{Origin, ResolvedSetting};

/// Settings whose value is the path of a file with a private key.
const KEY_FILES: [&str; 2] = ["dkim_key", "tls_key"];

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
        f.write_str("(not shown)")
    }
}

/// Returns a warning for each secret that other users of this machine can read.
pub(super) fn exposed_secrets(settings: &BTreeMap<String, ResolvedSetting>) -> Vec<String> {
    let secrets = settings.iter().filter(|(name, setting)| contains_secret(name, &setting.value));
    let secrets = secrets.filter_map(|(name, setting)| warning(name, &setting.origin));
    let key_files = settings.iter().filter(|(name, _)| KEY_FILES.contains(&name.as_str()));
    let key_files = key_files.filter_map(|(name, setting)| key_warning(name, Path::new(&setting.value)));
    secrets.chain(key_files).collect()
}

fn key_warning(name: &str, path: &Path) -> Option<String> {
    is_readable_by_others(path).then(|| {
        format!("Every user of this machine can read the key `{name}` in {0}. Run `chmod o= {0}`.", path.display())
    })
}

fn warning(name: &str, origin: &Origin) -> Option<String> {
    match origin {
        Origin::Flag(flag) => Some(format!(
            "`{flag}` contains a secret, and `ps` shows it to every user of this machine. Put it in a file, and set \
             {} to the path of that file.",
            secret_file_variable(name)
        )),
        Origin::File(path) | Origin::SecretFile { path, .. } if is_readable_by_others(path) => Some(format!(
            "Every user of this machine can read the secret `{name}` in {0}. Run `chmod o= {0}`.",
            path.display()
        )),
        _ => None,
    }
}

/// The variable that names a file with the value of this setting.
pub(super) fn secret_file_variable(name: &str) -> String {
    format!("PORCHLIGHT_{}_FILE", name.to_uppercase())
}

/// Whether users other than the owner and the group can read the file, and may enter all folders above it.
pub(super) fn is_readable_by_others(path: &Path) -> bool {
    const READ: u32 = 0o004;
    const ENTER: u32 = 0o001;
    let allows = |path: &Path, bit: u32| fs::metadata(path).is_ok_and(|file| file.permissions().mode() & bit != 0);
    fs::canonicalize(path)
        .is_ok_and(|path| allows(&path, READ) && path.ancestors().skip(1).all(|folder| allows(folder, ENTER)))
}
