//! The format of the log.

use super::InvalidSettings;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people: time, level, message, then the fields.
    Text,
    /// `key=value` pairs.
    Logfmt,
    /// One object per line.
    Json,
    /// Only the sentence that says why the service ended.
    Off,
}

impl LogFormat {
    pub(super) fn parse(name: &str, text: &str) -> Result<Self, InvalidSettings> {
        match text {
            "text" => Ok(Self::Text),
            "logfmt" => Ok(Self::Logfmt),
            "json" => Ok(Self::Json),
            "off" => Ok(Self::Off),
            _ => Err(InvalidSettings::new(name, "it is none of text, logfmt, json and off")),
        }
    }
}
