//! Brings together what was written where. The only reader of the environment.

use std::collections::BTreeMap;
use std::path::Path;

use super::InvalidSettings;
use super::raw::{RawSettings, named, names};

/// Settings that may hold a password: `PORCHLIGHT_X_FILE` may name a file that holds the value.
const SECRETS: [&str; 3] = ["database_url", "ops_token", "smtp_url"];

/// The file that is read when none is named.
const DEFAULT_FILE: &str = "porchlight.toml";

/// A setting that somebody made, as written, and where: a flag, a variable, or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedSetting {
    pub value: String,
    pub place: String,
}

impl ResolvedSetting {
    /// Puts flags and environment (`given`, from the command line) over the file.
    ///
    /// # Errors
    /// When the file cannot be understood, or a secret is given twice.
    pub fn resolve(file: Option<&Path>, given: &RawSettings) -> Result<BTreeMap<String, Self>, InvalidSettings> {
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

fn read_file(path: &Path) -> Result<Vec<(String, String)>, InvalidSettings> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| InvalidSettings(format!("The settings file {shown} could not be read: {error}.")))?;
    let table: toml::Table = text.parse().map_err(|error| {
        InvalidSettings(format!("The settings file {shown} is not TOML: {}.", fault(&error, &text)))
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

/// What is wrong and in which line, but not the line itself, which may hold a secret. A key holds none.
fn fault(error: &toml::de::Error, text: &str) -> String {
    let message = error.message();
    let Some(span) = error.span() else { return message.to_owned() };
    let line = 1 + text.get(..span.start).map_or(0, |before| before.matches('\n').count());
    match text.get(span) {
        Some(key) if message == "duplicate key" => format!("line {line} sets `{}` again", key.trim()),
        _ => format!("line {line}, {message}"),
    }
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
