//! Every setting, and the only reader of the environment.
//!
//! A setting has one name in three dresses: `base_url` in the file, `PORCHLIGHT_BASE_URL` in the
//! environment, `--base-url` as a flag. A flag beats the environment, which beats the file, which
//! beats the default. Whatever is wrong is told in one sentence that names the setting.

mod mail;
mod ops;
mod raw;
mod redact;
mod resolve;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use url::Url;

use crate::domain::base_url::BaseUrl;
use crate::domain::limits::MAX_LETTER_RATE;

pub use mail::MailSettings;
pub use ops::{Ops, OpsListen};
pub use raw::RawSettings;
pub use redact::redacted;
pub use resolve::{ResolvedSetting, is_secret};

/// Settings as understood.
#[derive(Clone, Debug)]
pub struct Settings {
    pub listen: SocketAddr,
    /// `None`: wherever the listener turns out to be.
    pub base_url: Option<BaseUrl>,
    pub data_dir: PathBuf,
    pub releases_dir: PathBuf,
    /// `None`: SQLite in `data_dir`.
    pub database_url: Option<String>,
    pub download_url: Option<String>,
    pub site_dir: Option<PathBuf>,
    pub allowed_origins: Vec<String>,
    pub ops: Ops,
    pub ai_train: bool,
    pub postal_address: Option<String>,
    /// Letters a second.
    pub letter_rate: u32,
    /// `None`: mail waits in the store.
    pub mail: Option<MailSettings>,
}

/// One sentence that names the setting and says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidSettings(String);

impl InvalidSettings {
    #[must_use]
    pub fn of(setting: &str, why: impl fmt::Display) -> Self {
        Self(format!("The setting `{setting}` cannot be used: {why}."))
    }
}

impl Settings {
    /// Puts flags and environment (`given`, from the command line) over the file, and understands them.
    ///
    /// # Errors
    /// With the first setting that is wrong.
    pub fn load(file: Option<&Path>, given: &RawSettings) -> Result<Self, InvalidSettings> {
        let mut chosen = ResolvedSetting::resolve(file, given)?;
        Self::parse(|name| chosen.remove(name).map(|chosen| chosen.value))
    }

    fn parse(mut take: impl FnMut(&str) -> Option<String>) -> Result<Self, InvalidSettings> {
        let mut parse = |name: &'static str| take(name).map(|text| (name, text));
        let data_dir = parse("data_dir").map_or_else(|| PathBuf::from("data"), |(_, text)| text.into());
        Ok(Self {
            releases_dir: parse("releases_dir").map_or_else(|| data_dir.join("releases"), |(_, text)| text.into()),
            postal_address: parse("postal_address")
                .map(|(_, text)| text.trim().to_owned())
                .filter(|text| !text.is_empty()),
            letter_rate: match parse("letter_rate") {
                None => 10,
                Some((name, text)) => {
                    text.parse().ok().filter(|rate| (1..=MAX_LETTER_RATE).contains(rate)).ok_or_else(|| {
                        InvalidSettings::of(name, format!("it is not a number from 1 to {MAX_LETTER_RATE}"))
                    })?
                }
            },
            ops: Ops::parse(parse("ops_listen"), parse("ops_token"))?,
            listen: match parse("listen") {
                None => SocketAddr::from(([127, 0, 0, 1], 8080)),
                Some((name, text)) => text
                    .parse()
                    .map_err(|_| InvalidSettings::of(name, "it is not an address and port such as 127.0.0.1:8080"))?,
            },
            base_url: parse("base_url")
                .map(|(name, text)| BaseUrl::parse(&text).map_err(|why| InvalidSettings::of(name, why)))
                .transpose()?,
            data_dir,
            database_url: parse("database_url").map(|(_, text)| text),
            download_url: parse("download_url")
                .map(|(name, text)| web_address(&text).ok_or(InvalidSettings::of(name, "it is not an http address")))
                .transpose()?,
            site_dir: parse("site_dir").map(|(_, text)| text.into()),
            allowed_origins: match parse("allowed_origins") {
                None => Vec::new(),
                Some((name, text)) => text
                    .split(',')
                    .map(str::trim)
                    .filter(|origin| !origin.is_empty())
                    .map(|origin| BaseUrl::parse(origin).map(|origin| origin.to_string()))
                    .collect::<Result<_, _>>()
                    .map_err(|why| InvalidSettings::of(name, format!("of one origin, {why}")))?,
            },
            ai_train: match parse("ai_train") {
                None => false,
                Some((name, text)) => match text.as_str() {
                    "yes" => true,
                    "no" => false,
                    _ => return Err(InvalidSettings::of(name, "it is neither yes nor no")),
                },
            },
            mail: MailSettings::parse(&mut take)?,
        })
    }
}

/// The address, if a browser could follow it.
pub(crate) fn web_address(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then(|| url.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(toml: &str, given: &RawSettings) -> Result<Settings, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("porchlight.toml");
        std::fs::write(&file, toml).unwrap();
        Settings::load(Some(&file), given).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_given_beats_the_file_which_beats_the_default() {
        let settings = load("listen = '127.0.0.1:1'\nai_train = 'yes'", &RawSettings::default()).unwrap();
        assert_eq!(settings.listen.port(), 1);
        assert!(settings.ai_train);
        assert_eq!(settings.data_dir, Path::new("data"));

        let given = &RawSettings { listen: Some("127.0.0.1:2".to_owned()), ..RawSettings::default() };
        assert_eq!(load("listen = '127.0.0.1:1'", given).unwrap().listen.port(), 2);
    }

    #[test]
    fn a_wrong_setting_is_named() {
        for (toml, name) in [
            ("listen = 'here'", "`listen`"),
            ("base_url = 'https://a.example/b'", "`base_url`"),
            ("download_url = 'latest.dmg'", "`download_url`"),
            ("allowed_origins = 'https://a.example, b'", "`allowed_origins`"),
            ("ai_train = 'perhaps'", "`ai_train`"),
            ("letter_rate = 0", "`letter_rate`"),
            ("ops_listen = 'here'", "`ops_listen`"),
            ("ops_listen = '0.0.0.0:8081'", "`ops_token`"),
            ("ops_token = 'short'", "`ops_token`"),
            ("smtp_url = 'mail.example'", "`smtp_url`"),
            ("smtp_url = 'smtp://mail.example'\ncontact_to = 'a@b.example'", "`mail_from`"),
            ("smtp_url = 'smtp://mail.example'\nmail_from = 'a@b.example'", "`contact_to`"),
            ("contact_to = 'makers'", "`contact_to`"),
            ("listen = { a = 1 }", "`listen`"),
            ("lissen = '127.0.0.1:1'", "`lissen`"),
        ] {
            let sentence = load(toml, &RawSettings::default()).unwrap_err();
            assert!(sentence.contains(name), "{toml}: {sentence}");
        }
    }

    #[test]
    fn origins_may_be_a_list_and_are_compared_in_one_form() {
        let settings = load("allowed_origins = ['HTTPS://A.example:443', 'http://b.example']", &RawSettings::default());
        assert_eq!(settings.unwrap().allowed_origins, ["https://a.example", "http://b.example"]);
    }
}
