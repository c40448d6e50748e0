//! Every setting, and the only reader of the environment.
//!
//! A setting has one name in three dresses: `base_url` in the file, `PORCHLIGHT_BASE_URL` in the
//! environment, `--base-url` as a flag. A flag beats the environment, which beats the file, which
//! beats the default. Whatever is wrong is told in one sentence that names the setting.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::domain::base_url::BaseUrl;
use crate::domain::mailbox::Mailbox;
use crate::domain::relay::Relay;

/// Settings as written, in whichever dress.
#[derive(Args, Clone, Debug, Default, Deserialize, Serialize)]
#[command(next_help_heading = "Settings (each also a line of porchlight.toml)")]
#[serde(default)]
pub struct Written {
    /// Address and port to serve on [default: 127.0.0.1:8080]
    #[arg(long, global = true, env = "PORCHLIGHT_LISTEN", value_name = "ADDRESS")]
    pub listen: Option<String>,

    /// The public address of the site, without a path; all absolute links start with it [default: http:// + listen]
    #[arg(long, global = true, env = "PORCHLIGHT_BASE_URL", value_name = "URL")]
    pub base_url: Option<String>,

    /// Folder of the embedded database [default: ./data]
    #[arg(long, global = true, env = "PORCHLIGHT_DATA_DIR", value_name = "FOLDER")]
    pub data_dir: Option<String>,

    /// Folder of the published disk images; several instances share it [default: releases in the data folder]
    #[arg(long, global = true, env = "PORCHLIGHT_RELEASES_DIR", value_name = "FOLDER")]
    pub releases_dir: Option<String>,

    /// `sqlite:PATH` or `postgres://user:password@host/database` [default: SQLite in the data folder]
    #[arg(long, global = true, env = "PORCHLIGHT_DATABASE_URL", hide_env_values = true, value_name = "URL")]
    pub database_url: Option<String>,

    /// An address elsewhere that always leads to the newest disk image [default: none]
    #[arg(long, global = true, env = "PORCHLIGHT_DOWNLOAD_URL", value_name = "URL")]
    pub download_url: Option<String>,

    /// Folder whose files replace those of the site that comes along, name by name [default: none]
    #[arg(long, global = true, env = "PORCHLIGHT_SITE_DIR", value_name = "FOLDER")]
    pub site_dir: Option<String>,

    /// Origins besides the site's own that may call /mcp from a browser, separated by commas [default: none]
    #[arg(long, global = true, env = "PORCHLIGHT_ALLOWED_ORIGINS", value_name = "ORIGINS")]
    pub allowed_origins: Option<String>,

    /// Address and port for the makers' own eyes (dashboard, /metrics, /healthz, /readyz), or off [default: 127.0.0.1:8081]
    #[arg(long, global = true, env = "PORCHLIGHT_OPS_LISTEN", value_name = "ADDRESS|off")]
    pub ops_listen: Option<String>,

    /// What who asks there has to know; needed when `ops_listen` is not loopback [default: none]
    #[arg(long, global = true, env = "PORCHLIGHT_OPS_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    pub ops_token: Option<String>,

    /// Printed in the monthly letter, as the law of many countries wants; needed to send one [default: none]
    #[arg(long, global = true, env = "PORCHLIGHT_POSTAL_ADDRESS", value_name = "ADDRESS")]
    pub postal_address: Option<String>,

    /// How many letters go out in a second [default: 10]
    #[arg(long, global = true, env = "PORCHLIGHT_LETTER_RATE", value_name = "NUMBER")]
    pub letter_rate: Option<String>,

    /// Whether robots.txt allows training on the site: yes or no [default: no]
    #[arg(long, global = true, env = "PORCHLIGHT_AI_TRAIN", value_name = "YES|NO")]
    pub ai_train: Option<String>,

    /// Mail server that takes our mail: smtps:// or smtp://, with user and password [default: none, mail waits]
    #[arg(long, global = true, env = "PORCHLIGHT_SMTP_URL", hide_env_values = true, value_name = "URL")]
    pub smtp_url: Option<String>,

    /// Sender of all mail: an address, or `Name <address>`; needed with `smtp_url` [default: none]
    #[arg(long, global = true, env = "PORCHLIGHT_MAIL_FROM", value_name = "SENDER")]
    pub mail_from: Option<String>,

    /// Where contact messages are forwarded; needed with `smtp_url` [default: none]
    #[arg(long, global = true, env = "PORCHLIGHT_CONTACT_TO", value_name = "ADDRESS")]
    pub contact_to: Option<String>,
}

/// Settings that may hold a password: `PORCHLIGHT_X_FILE` may name a file that holds the value.
const SECRETS: [&str; 3] = ["database_url", "ops_token", "smtp_url"];

/// The file that is read when none is named.
const DEFAULT_FILE: &str = "porchlight.toml";

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

/// What sending mail takes: all of it, or nothing.
#[derive(Clone, Debug)]
pub struct MailSettings {
    pub relay: Relay,
    pub from: Mailbox,
    pub contact_to: Mailbox,
}

/// The listener for the makers' own eyes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ops {
    pub listen: OpsListen,
    pub token: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpsListen {
    Off,
    /// Nobody asked for it: it is left out if the port is taken.
    IfFree(SocketAddr),
    At(SocketAddr),
}

/// A setting that somebody made, as written, and where: a flag, a variable, or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    pub value: String,
    pub place: String,
}

impl Chosen {
    /// Puts flags and environment (`given`, from the command line) over the file.
    ///
    /// # Errors
    /// When the file cannot be understood, or a secret is given twice.
    pub fn gather(file: Option<&Path>, given: &Written) -> Result<BTreeMap<String, Self>, InvalidSettings> {
        let file = file.or_else(|| Some(Path::new(DEFAULT_FILE)).filter(|file| file.exists()));
        let mut all = BTreeMap::new();
        if let Some(path) = file {
            let place = path.display().to_string();
            let values = read_file(path)?.into_iter();
            all.extend(values.map(|(name, value)| (name, Self { value, place: place.clone() })));
        }
        for (name, value) in named(given) {
            let variable = format!("PORCHLIGHT_{}", name.to_uppercase());
            let is_flag = environment(&variable).as_ref() != Some(&value);
            let place = if is_flag { format!("--{}", name.replace('_', "-")) } else { variable };
            all.insert(name, Self { value, place });
        }
        for name in SECRETS {
            let variable = format!("PORCHLIGHT_{}_FILE", name.to_uppercase());
            if let Some(path) = environment(&variable) {
                if named(given).iter().any(|(given, _)| given == name) {
                    return Err(InvalidSettings::of(name, format!("it is given itself and in {variable}; keep one")));
                }
                let secret = std::fs::read_to_string(&path)
                    .map_err(|error| InvalidSettings::of(name, format!("{variable} names {path}: {error}")))?;
                all.insert(name.to_owned(), Self { value: secret.trim_end().to_owned(), place: variable });
            }
        }
        Ok(all)
    }
}

/// Whether a setting may hold what nobody should read over a shoulder.
#[must_use]
pub fn is_secret(name: &str) -> bool {
    SECRETS.contains(&name)
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
    pub fn load(file: Option<&Path>, given: &Written) -> Result<Self, InvalidSettings> {
        let mut chosen = Chosen::gather(file, given)?;
        Self::understand(|name| chosen.remove(name).map(|chosen| chosen.value))
    }

    fn understand(mut take: impl FnMut(&str) -> Option<String>) -> Result<Self, InvalidSettings> {
        let mut parse = |name: &'static str| take(name).map(|text| (name, text));
        let data_dir = parse("data_dir").map_or_else(|| PathBuf::from("data"), |(_, text)| text.into());
        Ok(Self {
            releases_dir: parse("releases_dir").map_or_else(|| data_dir.join("releases"), |(_, text)| text.into()),
            postal_address: parse("postal_address")
                .map(|(_, text)| text.trim().to_owned())
                .filter(|text| !text.is_empty()),
            letter_rate: match parse("letter_rate") {
                None => 10,
                Some((name, text)) => text
                    .parse()
                    .ok()
                    .filter(|rate| (1..=1000).contains(rate))
                    .ok_or_else(|| InvalidSettings::of(name, "it is not a number from 1 to 1000"))?,
            },
            ops: Ops::understand(parse("ops_listen"), parse("ops_token"))?,
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
            mail: MailSettings::understand(&mut take)?,
        })
    }
}

impl Ops {
    fn understand(
        listen: Option<(&'static str, String)>,
        token: Option<(&'static str, String)>,
    ) -> Result<Self, InvalidSettings> {
        let token = match token {
            Some((name, text)) if text.len() < 16 => {
                return Err(InvalidSettings::of(name, "it is shorter than 16 characters, and could be guessed"));
            }
            token => token.map(|(_, text)| text),
        };
        let listen = match listen {
            None => OpsListen::IfFree(SocketAddr::from(([127, 0, 0, 1], 8081))),
            Some((_, text)) if text == "off" => OpsListen::Off,
            Some((name, text)) => {
                let address: SocketAddr = text.parse().map_err(|_| {
                    InvalidSettings::of(name, "it is neither off nor an address such as 127.0.0.1:8081")
                })?;
                if !address.ip().is_loopback() && token.is_none() {
                    return Err(InvalidSettings::of(name, "others could reach it; set `ops_token` as well"));
                }
                OpsListen::At(address)
            }
        };
        Ok(Self { listen, token })
    }
}

impl MailSettings {
    fn understand(mut take: impl FnMut(&str) -> Option<String>) -> Result<Option<Self>, InvalidSettings> {
        let relay = take("smtp_url")
            .map(|text| Relay::parse(&text).map_err(|why| InvalidSettings::of("smtp_url", why)))
            .transpose()?;
        let mut mailbox = |name| {
            take(name).map(|text| Mailbox::parse(&text).map_err(|why| InvalidSettings::of(name, why))).transpose()
        };
        let (from, contact_to) = (mailbox("mail_from")?, mailbox("contact_to")?);
        let Some(relay) = relay else { return Ok(None) };
        let missing = |name| move || InvalidSettings::of(name, "it is missing, and `smtp_url` is set");
        Ok(Some(Self {
            relay,
            from: from.ok_or_else(missing("mail_from"))?,
            contact_to: contact_to.ok_or_else(missing("contact_to"))?,
        }))
    }
}

/// The address, if a browser could follow it.
pub(crate) fn web_address(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then(|| url.to_string())
}

/// The settings that are given, by name.
fn named(written: &Written) -> Vec<(String, String)> {
    let Ok(serde_json::Value::Object(members)) = serde_json::to_value(written) else {
        return Vec::new();
    };
    members.into_iter().filter_map(|(name, value)| Some((name, value.as_str()?.to_owned()))).collect()
}

fn names() -> Vec<String> {
    match serde_json::to_value(Written::default()) {
        Ok(serde_json::Value::Object(members)) => members.into_iter().map(|(name, _)| name).collect(),
        _ => Vec::new(),
    }
}

fn read_file(path: &Path) -> Result<Vec<(String, String)>, InvalidSettings> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| InvalidSettings(format!("The settings file {shown} could not be read: {error}.")))?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        InvalidSettings(format!("The settings file {shown} is not TOML: {}.", error.message()))
    })?;
    let known = names();
    table
        .into_iter()
        .map(|(name, value)| {
            if !known.contains(&name) {
                return Err(InvalidSettings(format!(
                    "The settings file {shown} has an unknown setting `{name}`. Known are {}.",
                    known.join(", ")
                )));
            }
            let text = as_text(&value).ok_or_else(|| InvalidSettings::of(&name, "it is not a plain value"))?;
            Ok((name, text))
        })
        .collect()
}

/// Numbers and lists are welcome in the file; elsewhere everything is text.
fn as_text(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Array(items) => items.iter().map(as_text).collect::<Option<Vec<_>>>().map(|items| items.join(",")),
        _ => None,
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the place that the lint leads to")]
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(toml: &str, given: &Written) -> Result<Settings, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("porchlight.toml");
        std::fs::write(&file, toml).unwrap();
        Settings::load(Some(&file), given).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_given_beats_the_file_which_beats_the_default() {
        let settings = load("listen = '127.0.0.1:1'\nai_train = 'yes'", &Written::default()).unwrap();
        assert_eq!(settings.listen.port(), 1);
        assert!(settings.ai_train);
        assert_eq!(settings.data_dir, Path::new("data"));

        let given = &Written { listen: Some("127.0.0.1:2".to_owned()), ..Written::default() };
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
            let sentence = load(toml, &Written::default()).unwrap_err();
            assert!(sentence.contains(name), "{toml}: {sentence}");
        }
    }

    #[test]
    fn origins_may_be_a_list_and_are_compared_in_one_form() {
        let settings = load("allowed_origins = ['HTTPS://A.example:443', 'http://b.example']", &Written::default());
        assert_eq!(settings.unwrap().allowed_origins, ["https://a.example", "http://b.example"]);
    }
}
