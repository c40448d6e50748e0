//! Warnings about secrets that other users of this machine can read.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::resolve::{Origin, ResolvedSetting};
use super::secret::{contains_secret, secret_file_variable};

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
    is_readable_by_others(file).then(|| format!("{warning} `{name}` in {0}. Run `chmod o= {0}`.", file.display()))
}

/// Whether users other than the owner and the group can read the file, and may enter all folders above it.
fn is_readable_by_others(path: &Path) -> bool {
    const READ: u32 = 0o004;
    const ENTER: u32 = 0o001;
    let allows = |path: &Path, bit: u32| fs::metadata(path).is_ok_and(|file| file.permissions().mode() & bit != 0);
    fs::canonicalize(path)
        .is_ok_and(|path| allows(&path, READ) && path.ancestors().skip(1).all(|folder| allows(folder, ENTER)))
}
