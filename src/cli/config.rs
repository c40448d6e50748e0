//! `porchlight config`: every setting there is, made from the arguments, so that none is left out.

use std::collections::BTreeMap;

use clap::{Arg, CommandFactory, Subcommand};
use serde_json::{Value, json};

use super::{Cli, CommandFailure, base_url, say, say_json};
use crate::config::{InvalidSettings, ResolvedSetting, Settings, is_secret, redacted};
use crate::store::Database;

#[derive(Clone, Copy, Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Print a porchlight.toml with every setting, its meaning and its default
    #[command(before_help = "Example:\n  porchlight config example > porchlight.toml")]
    Example,
    /// Show what is in force and where it comes from; secrets are not shown
    #[command(before_help = "Example:\n  porchlight config show --config /etc/porchlight.toml")]
    Show {
        /// As JSON, for programs
        #[arg(long)]
        json: bool,
    },
}

/// A setting as the help describes it.
#[derive(Debug)]
struct Described {
    name: String,
    meaning: String,
    default: String,
    /// What kind of value it takes.
    kind: String,
}

impl Described {
    fn all() -> Vec<Self> {
        Cli::command().get_arguments().filter_map(Self::of).collect()
    }

    /// Settings are the arguments whose help ends with a default, but for the name of the file.
    fn of(argument: &Arg) -> Option<Self> {
        let help = argument.get_help()?.to_string();
        let (meaning, default) = help.strip_suffix(']')?.rsplit_once(" [default: ")?;
        let kind = argument.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
        let name = argument.get_id().to_string();
        (name != "config").then(|| Self {
            name,
            meaning: meaning.to_owned(),
            default: default.to_owned(),
            kind: kind.unwrap_or_default(),
        })
    }

    /// What is in force when nobody chose anything: a value that could have been chosen, or none.
    fn unless_chosen(&self, settings: Option<&Settings>) -> Option<String> {
        match (self.name.as_str(), settings) {
            ("base_url", Some(settings)) => Some(base_url(settings).to_string()),
            ("releases_dir", Some(settings)) => Some(settings.releases_dir.display().to_string()),
            ("database_url", Some(settings)) => match Database::of(settings) {
                Ok(Database::Sqlite(path)) => Some(format!("sqlite:{}", path.display())),
                _ => None,
            },
            _ => Some(self.default.clone()).filter(|_| self.has_plain_default()),
        }
    }

    /// Whether the default is a value, and not said in words.
    fn has_plain_default(&self) -> bool {
        self.default != "none" && !self.default.contains(' ')
    }

    /// The line of the file that would change nothing, or one to be filled in.
    fn line(&self) -> String {
        let Self { name, default, kind, .. } = self;
        if default.parse::<u32>().is_ok() {
            return format!("{name} = {default}");
        }
        format!("{name} = \"{}\"", if self.has_plain_default() { default } else { kind })
    }
}

pub(super) fn run(
    command: ConfigCommand,
    chosen: Result<BTreeMap<String, ResolvedSetting>, InvalidSettings>,
    settings: Result<Settings, InvalidSettings>,
) -> Result<(), CommandFailure> {
    match command {
        ConfigCommand::Example => {
            example();
            Ok(())
        }
        ConfigCommand::Show { json } => {
            show(&chosen?, settings.as_ref().ok(), json);
            settings?;
            Ok(())
        }
    }
}

fn example() {
    say("# Settings of Porchlight. Take the # away from the lines that you change.");
    say("# A flag (--base-url) beats the environment (PORCHLIGHT_BASE_URL), which beats this file.");
    for setting in Described::all() {
        say(&format!("\n# {} [default: {}]", setting.meaning, setting.default));
        if is_secret(&setting.name) {
            let variable = format!("PORCHLIGHT_{}_FILE", setting.name.to_uppercase());
            say(&format!("# It may hold a secret: {variable} may name a file that has it instead."));
        }
        say(&format!("# {}", setting.line()));
    }
}

fn show(chosen: &BTreeMap<String, ResolvedSetting>, settings: Option<&Settings>, as_json: bool) {
    let all = Described::all().into_iter().map(|setting| {
        let (value, place) = match chosen.get(&setting.name) {
            Some(chosen) => (Some(redacted(&setting.name, &chosen.value)), chosen.place.as_str()),
            None => (setting.unless_chosen(settings), "default"),
        };
        (setting.name, value, place)
    });
    if as_json {
        let all: Value =
            all.map(|(name, value, place)| json!({ "name": name, "value": value, "from": place })).collect();
        return say_json(&all);
    }
    for (name, value, place) in all {
        say(&format!("{name:<16} {}  ({place})", value.as_deref().unwrap_or("none")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RawSettings;

    #[test]
    fn every_setting_is_described() {
        let written = serde_json::to_value(RawSettings::default()).unwrap();
        let described: Vec<_> = Described::all().into_iter().map(|setting| setting.name).collect();
        assert_eq!(described, written.as_object().unwrap().keys().cloned().collect::<Vec<_>>());
    }
}
