//! `porchlight release list` and `show`

use serde_json::{Value, json};

use crate::cli::failure::Failure;
use crate::cli::releases::change::unknown;
use crate::cli::terminal::{ListPrinter, eprint_line, print_record, sanitize_line, terminal_width, truncate};
use crate::domain::releases::{BuildNumber, MacosVersion, Reason, Release, Releases, Signature, Version};

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
        list.push(&release_json(release, releases), &truncate(line.trim_end(), terminal_width()));
    }
    list.finish(NO_RELEASES);
}

pub(super) fn show(releases: &Releases, version: Option<Version>, as_json: bool) -> Result<(), Failure> {
    let release = match version {
        Some(version) => releases.find_version(&version).ok_or_else(|| unknown(&version))?,
        None => releases.newest().ok_or_else(|| Failure::new(NO_RELEASES))?,
    };
    let json = release_json(release, releases);
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

fn release_json(release: &Release, releases: &Releases) -> Value {
    let withdrawal = release.withdrawn.as_ref();
    json!({
        "version": release.version.as_str(),
        "newest": releases.newest() == Some(release),
        "prerelease": !release.channel.is_stable(),
        "channel": release.channel.as_str(),
        "critical": release.critical,
        "phased_days": release.phased.days(),
        "published": release.published.rfc3339(),
        "withdrawn": withdrawal.map(|withdrawal| withdrawal.at.rfc3339()),
        "withdrawn_reason": withdrawal.and_then(|withdrawal| withdrawal.reason.as_ref()).map(Reason::as_str),
        "file": release.file.as_str(),
        "url": release.external_url,
        "length": release.length,
        "sha256": release.sha256.hex(),
        "build": release.build.as_ref().map(BuildNumber::as_str),
        "minimum_macos": release.minimum_macos.as_ref().map(MacosVersion::as_str),
        "ed_signature": release.signature.as_ref().map(Signature::as_str),
        "notes": release.notes.as_str(),
    })
}
