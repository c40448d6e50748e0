//! Settings with two values.

use super::InvalidSettings;

/// A setting that is on or off, and the words for both.
#[derive(Clone, Copy, Debug)]
pub(super) struct Switch {
    name: &'static str,
    on: &'static str,
    off: &'static str,
    default: bool,
}

pub(super) const AI_TRAIN: Switch = Switch { name: "ai_train", on: "yes", off: "no", default: false };
pub(super) const CLIENT_LIMITS: Switch = Switch { name: "client_limits", on: "on", off: "off", default: true };
pub(super) const CONFIRM_UPDATES: Switch = Switch { name: "confirm_updates", on: "yes", off: "no", default: false };
pub(super) const HSTS_SUBDOMAINS: Switch = Switch { name: "hsts_subdomains", on: "yes", off: "no", default: false };

/// All switches. For these, the file may use TOML booleans.
const SWITCHES: [Switch; 4] = [AI_TRAIN, CLIENT_LIMITS, CONFIRM_UPDATES, HSTS_SUBDOMAINS];

impl Switch {
    pub(super) fn parse(self, text: Option<String>) -> Result<bool, InvalidSettings> {
        let Self { name, on, off, default } = self;
        match text {
            None => Ok(default),
            Some(text) if text == on => Ok(true),
            Some(text) if text == off => Ok(false),
            Some(_) => Err(InvalidSettings::new(name, format!("it is neither {on} nor {off}"))),
        }
    }

    /// Returns the text for a boolean of TOML. `None` if the setting is no switch.
    pub(super) fn text_of(setting: &str, value: bool) -> Option<&'static str> {
        let switch = SWITCHES.iter().find(|switch| switch.name == setting)?;
        Some(if value { switch.on } else { switch.off })
    }
}
