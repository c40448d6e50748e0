//! The texts of the settings, and how a setting is parsed from its text.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

/// A sentence that names the invalid setting or flag, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidSettings(pub(super) String);

impl InvalidSettings {
    pub fn new(setting: &str, reason: impl fmt::Display) -> Self {
        Self(format!("The setting `{setting}` cannot be used: {reason}."))
    }

    /// The error of a flag that is not a setting.
    pub fn flag(flag: &str, reason: impl fmt::Display) -> Self {
        Self(format!("The value of `{flag}` is invalid: {reason}."))
    }
}

/// The texts of the settings that are set and were not parsed yet.
pub(super) struct Texts(BTreeMap<String, String>);

impl FromIterator<(String, String)> for Texts {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(texts: I) -> Self {
        Self(texts.into_iter().collect())
    }
}

impl Texts {
    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    /// Parses a setting, if it is set.
    pub(super) fn parse<T, E: fmt::Display>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, InvalidSettings> {
        let text = self.take(name);
        text.map(|text| parse(&text).map_err(|why| InvalidSettings::new(name, why))).transpose()
    }

    /// Parses a setting that is on or off.
    pub(super) fn switch(&mut self, name: &str) -> Result<bool, InvalidSettings> {
        let Some(Switch { on, off, default, .. }) = Switch::named(name) else { return Ok(false) };
        let parsed = self.parse(name, |text| match text {
            text if text == *on => Ok(true),
            text if text == *off => Ok(false),
            _ => Err(format!("it is neither {on} nor {off}")),
        })?;
        Ok(parsed.unwrap_or(*default))
    }
}

/// A setting that is on or off, and the words for both. For these, the file may use TOML booleans.
struct Switch {
    name: &'static str,
    on: &'static str,
    off: &'static str,
    default: bool,
}

const SWITCHES: [Switch; 5] = [
    Switch { name: "ai_train", on: "yes", off: "no", default: false },
    Switch { name: "client_limits", on: "on", off: "off", default: true },
    Switch { name: "confirm_updates", on: "yes", off: "no", default: false },
    Switch { name: "hsts_subdomains", on: "yes", off: "no", default: false },
    Switch { name: "letters_archive", on: "yes", off: "no", default: false },
];

impl Switch {
    fn named(name: &str) -> Option<&'static Self> {
        SWITCHES.iter().find(|switch| switch.name == name)
    }
}

/// Returns the text for a boolean of TOML. `None` if the setting is no switch.
pub(super) fn switch_text(setting: &str, value: bool) -> Option<&'static str> {
    let switch = Switch::named(setting)?;
    Some(if value { switch.on } else { switch.off })
}

/// Two settings that are set together, or not at all.
pub(super) fn both<A, B>(
    (first, a): (&str, Option<A>),
    (second, b): (&str, Option<B>),
) -> Result<Option<(A, B)>, InvalidSettings> {
    match (a, b) {
        (Some(a), Some(b)) => Ok(Some((a, b))),
        (None, None) => Ok(None),
        (Some(_), None) => Err(missing(second, first)),
        (None, Some(_)) => Err(missing(first, second)),
    }
}

/// The error of a setting that another one needs.
pub(super) fn missing(setting: &str, needed_by: &str) -> InvalidSettings {
    InvalidSettings::new(setting, format!("it is missing, but `{needed_by}` needs it"))
}

/// Parses a list whose items are separated by commas.
pub(super) fn parse_list<T, E>(text: &str, parse: impl Fn(&str) -> Result<T, E>) -> Result<Vec<T>, E> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(parse).collect()
}

/// Parses one address or several.
pub(super) fn parse_addresses(text: &str) -> Result<Vec<SocketAddr>, &'static str> {
    let addresses = parse_list(text, str::parse).ok().filter(|addresses| !addresses.is_empty());
    addresses.ok_or("it is not an address and port such as 127.0.0.1:8080")
}
