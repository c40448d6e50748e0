//! `porchlight config`: lists every setting. The list is derived from the argument definitions, so it is complete.

use std::collections::BTreeMap;

use clap::{Arg, Args, Command, Subcommand};
use serde_json::json;

use super::failure::Failure;
use super::run::block_on;
use super::terminal::{print_line, print_record};
use crate::config::{InvalidSettings, RawSettings, ResolvedSetting, Settings, is_secret, redacted};
use crate::store::{Database, Store};

#[derive(Clone, Copy, Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Print an example porchlight.toml with every setting and its default
    #[command(before_help = "Example:\n  porchlight config example > porchlight.toml")]
    Example,
    /// Show the current settings and where each is set; secrets are hidden
    #[command(before_help = "Example:\n  porchlight config show --config /etc/porchlight.toml")]
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// A setting and its help text.
#[derive(Debug)]
struct SettingHelp {
    name: String,
    description: String,
    default: String,
    /// The placeholder of the value, such as `URL`.
    value_name: String,
}

impl SettingHelp {
    fn all() -> Vec<Self> {
        RawSettings::augment_args(Command::new("porchlight")).get_arguments().filter_map(Self::of).collect()
    }

    fn of(argument: &Arg) -> Option<Self> {
        let help = argument.get_help()?.to_string();
        let (description, default) = help.strip_suffix(']')?.rsplit_once(" [default: ")?;
        let value_name = argument.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
        let name = argument.get_id().to_string();
        Some(Self {
            name,
            description: description.to_owned(),
            default: default.to_owned(),
            value_name: value_name.unwrap_or_default(),
        })
    }

    /// Returns the value that applies when the setting is not set, if there is one.
    fn default_value(&self, settings: Option<&Settings>) -> Option<String> {
        match (self.name.as_str(), settings) {
            ("base_url", Some(settings)) => Some(settings.public_url().to_string()),
            ("releases_dir", Some(settings)) => settings.images.folder().map(|folder| folder.display().to_string()),
            ("database_url", Some(settings)) => match Database::from_settings(settings) {
                Ok(Database::Sqlite(path)) => Some(format!("sqlite:{}", path.display())),
                _ => None,
            },
            _ => Some(self.default.clone()).filter(|_| self.has_literal_default()),
        }
    }

    /// Returns whether the default is a literal value, not a description such as "SQLite in the data folder".
    fn has_literal_default(&self) -> bool {
        self.default != "none" && !self.default.contains(' ')
    }

    /// Returns a line for `porchlight.toml` with the default value, or with a placeholder.
    fn line(&self) -> String {
        let Self { name, default, value_name, .. } = self;
        if default.parse::<u32>().is_ok() {
            return format!("{name} = {default}");
        }
        format!("{name} = \"{}\"", if self.has_literal_default() { default } else { value_name })
    }
}

pub(super) fn run(
    command: ConfigCommand,
    resolved: Result<BTreeMap<String, ResolvedSetting>, InvalidSettings>,
    settings: Result<Settings, InvalidSettings>,
) -> Result<(), Failure> {
    match command {
        ConfigCommand::Example => {
            print_example();
            Ok(())
        }
        ConfigCommand::Show { json } => {
            show(&resolved?, settings.as_ref().ok(), json)?;
            settings?;
            Ok(())
        }
    }
}

fn print_example() {
    print_line("# Settings of Porchlight. Uncomment the lines that you change.");
    print_line("# A flag (--base-url) overrides the environment (PORCHLIGHT_BASE_URL), which overrides this file.");
    for setting in SettingHelp::all() {
        print_line(&format!("\n# {} [default: {}]", setting.description, setting.default));
        if is_secret(&setting.name) {
            let variable = format!("PORCHLIGHT_{}_FILE", setting.name.to_uppercase());
            print_line(&format!("# To keep a secret out of this file, set {variable} to a file that holds it."));
        }
        print_line(&format!("# {}", setting.line()));
    }
}

fn show(
    resolved: &BTreeMap<String, ResolvedSetting>,
    settings: Option<&Settings>,
    as_json: bool,
) -> Result<(), Failure> {
    let database = settings.and_then(|settings| Database::from_settings(settings).ok());
    let several_hosts = database.filter(Database::has_several_hosts);
    let (mut all, mut lines) = (Vec::new(), Vec::new());
    for setting in SettingHelp::all() {
        let (value, set_by) = match resolved.get(&setting.name) {
            Some(resolved) => (Some(redacted(&setting.name, &resolved.value)), resolved.origin.to_string()),
            None => (setting.default_value(settings), "default".to_owned()),
        };
        let mut json = json!({ "name": setting.name, "value": value, "from": set_by });
        let mut note = String::new();
        if let Some(database) = several_hosts.as_ref().filter(|_| setting.name == "database_url") {
            let host = host_in_use(database)?;
            note = match &host {
                Some(host) => format!("; {host} takes writes and is used"),
                None => "; no host takes writes".to_owned(),
            };
            json["host_in_use"] = host.into();
        }
        all.push(json);
        lines.push(format!("{:<16} {}  ({set_by}{note})", setting.name, value.as_deref().unwrap_or("none")));
    }
    print_record(as_json, &all.into(), &lines.join("\n"));
    Ok(())
}

/// Returns which of several hosts of the database takes writes, if any does.
fn host_in_use(database: &Database) -> Result<Option<String>, Failure> {
    block_on(async {
        let store = Store::open_for_requests(database)?;
        // The answer is which host is used, also if it refuses the question.
        let _ = store.ping().await;
        let host = store.host_in_use();
        store.close().await;
        Ok(host)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_help() {
        let raw = serde_json::to_value(RawSettings::default()).unwrap();
        let with_help: Vec<_> = SettingHelp::all().into_iter().map(|setting| setting.name).collect();
        assert_eq!(with_help, raw.as_object().unwrap().keys().cloned().collect::<Vec<_>>());
    }
}
