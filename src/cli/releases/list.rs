//! `porchlight release list` and `show`

use serde_json::Value;

use crate::actions::release_record;
use crate::cli::failure::Failure;
use crate::cli::releases::change::unknown;
use crate::cli::terminal::{ListPrinter, eprint_line, print_record, sanitize_line, terminal_width, truncate};
use crate::domain::releases::{Release, Releases, Version};

const NO_RELEASES: &str = "Nothing has been published yet. `porchlight release publish --help` shows how.";

pub(super) fn list(releases: &Releases, as_json: bool) {
    for version in releases.unreadable() {
        let version = sanitize_line(version);
        eprint_line(&format!("The release {version} in the database is damaged, and is not offered."));
    }
    let mut list = ListPrinter::new(as_json, None);
    for release in releases.iter() {
        let (version, date, state) = (release.version.as_str(), release.published.date(), state(release, releases));
        let line = format!("{version:<16} {date}  {:>14} bytes  {state}", release.length);
        list.push(&release_record(release, releases), &truncate(line.trim_end(), terminal_width()));
    }
    list.finish(NO_RELEASES);
}

pub(super) fn show(releases: &Releases, version: Option<Version>, as_json: bool) -> Result<(), Failure> {
    let release = match version {
        Some(version) => releases.find_version(&version).ok_or_else(|| unknown(&version))?,
        None => releases.newest().ok_or_else(|| Failure::new(NO_RELEASES))?,
    };
    let json = release_record(release, releases);
    let mut text = Vec::new();
    for (name, value) in json.as_object().into_iter().flatten().filter(|(name, _)| *name != "notes") {
        match value {
            Value::Null => {}
            Value::String(value) => text.push(format!("{name:<16} {value}")),
            other => text.push(format!("{name:<16} {other}")),
        }
    }
    if !release.notes.as_str().is_empty() {
        text.push(format!("\n{}", release.notes.as_str()));
    }
    print_record(as_json, &json, &text.join("\n"));
    Ok(())
}

fn state(release: &Release, releases: &Releases) -> String {
    match &release.withdrawn {
        Some(withdrawal) => {
            let reason = withdrawal.reason.as_ref().map(|reason| format!(": {reason}"));
            format!("withdrawn{}", reason.unwrap_or_default())
        }
        None if releases.newest() == Some(release) => "newest".to_owned(),
        None if release.channel.is_stable() => String::new(),
        None => release.channel.to_string(),
    }
}
