//! The key of a bucket, from the variables and files that other programs use for it.

use std::path::{Path, PathBuf};

use super::InvalidSettings;
use super::images::NAME;
use super::secret::Secret;

#[derive(Clone, Debug)]
pub struct AccessKey {
    pub id: String,
    pub secret: Secret,
    pub session_token: Option<Secret>,
    /// The file that has it, unless it is from variables.
    pub(super) file: Option<PathBuf>,
}

impl AccessKey {
    /// Reads the key from variables, else from the profile.
    pub(super) fn read(
        environment: impl Fn(&str) -> Option<String>,
        profile: &Profile,
    ) -> Result<Self, InvalidSettings> {
        let invalid = |why: String| Err(InvalidSettings::new(NAME, why));
        match (environment("AWS_ACCESS_KEY_ID"), environment("AWS_SECRET_ACCESS_KEY")) {
            (Some(id), Some(secret)) => {
                let session_token = environment("AWS_SESSION_TOKEN").map(Secret::new);
                Ok(Self { id, secret: Secret::new(secret), session_token, file: None })
            }
            (None, None) => match (profile.value("aws_access_key_id"), profile.value("aws_secret_access_key")) {
                (Some(id), Some(secret)) => {
                    let session_token = profile.value("aws_session_token").map(Secret::new);
                    Ok(Self { id, secret: Secret::new(secret), session_token, file: profile.key_file() })
                }
                _ => invalid(format!("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set{}", profile.lacks_key())),
            },
            _ => {
                let one = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY belong together, and only one of them is set";
                invalid(one.to_owned())
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn new(id: &str, secret: &str) -> Self {
        Self { id: id.to_owned(), secret: Secret::new(secret.to_owned()), session_token: None, file: None }
    }
}

/// A profile in the files that other programs share: one for keys, and one for the rest.
pub(super) struct Profile {
    name: String,
    files: Vec<SharedFile>,
}

struct SharedFile {
    path: PathBuf,
    /// The line above the values of the profile.
    heading: String,
    /// Empty if the file cannot be read.
    text: String,
}

impl Profile {
    pub(super) fn read(environment: impl Fn(&str) -> Option<String>) -> Self {
        let name = environment("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
        let file = |variable, default, heading| {
            let path = environment(variable).map(PathBuf::from);
            let path = path.or_else(|| environment("HOME").map(|home| Path::new(&home).join(default)))?;
            Some(SharedFile { text: std::fs::read_to_string(&path).unwrap_or_default(), path, heading })
        };
        let long_name = if name == "default" { name.clone() } else { format!("profile {name}") };
        let keys = file("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials", format!("[{name}]"));
        let rest = file("AWS_CONFIG_FILE", ".aws/config", format!("[{long_name}]"));
        Self { name, files: keys.into_iter().chain(rest).collect() }
    }

    pub(super) fn value(&self, name: &str) -> Option<String> {
        self.files.iter().find_map(|file| file.value(name)).map(ToOwned::to_owned)
    }

    /// The file that has the secret.
    fn key_file(&self) -> Option<PathBuf> {
        self.files.iter().find(|file| file.value("aws_secret_access_key").is_some()).map(|file| file.path.clone())
    }

    /// Continues a sentence that says that there is no key.
    fn lacks_key(&self) -> String {
        let file = self.files.first().map(|file| file.path.display());
        file.map_or_else(String::new, |file| format!(", and {file} has no key for the profile `{}`", self.name))
    }
}

impl SharedFile {
    /// Reads a line `name = value` below the heading.
    fn value(&self, name: &str) -> Option<&str> {
        let section = self.text.lines().map(str::trim).skip_while(|line| *line != self.heading).skip(1);
        let mut pairs = section.take_while(|line| !line.starts_with('[')).filter_map(|line| line.split_once('='));
        let (_, value) = pairs.find(|(found, _)| found.trim() == name)?;
        Some(value.trim()).filter(|value| !value.is_empty())
    }
}
