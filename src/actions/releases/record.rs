//! A release as the commands print it and the desk returns it.

use serde_json::{Value, json};

use crate::domain::releases::{BuildNumber, MacosVersion, Reason, Release, Releases, Signature};

/// What to ask makers who published the image of another version.
pub fn same_image_note(release: &Release, releases: &Releases) -> Option<String> {
    let other = &releases.same_image(release)?.version;
    Some(format!("This image is the one of {other}, too. Was it the right file?"))
}

/// `releases` say which one is the newest.
pub fn release_record(release: &Release, releases: &Releases) -> Value {
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
        "same_image_as": releases.same_image(release).map(|other| other.version.as_str()),
        "build": release.build.as_ref().map(BuildNumber::as_str),
        "minimum_macos": release.minimum_macos.as_ref().map(MacosVersion::as_str),
        "ed_signature": release.signature.as_ref().map(Signature::as_str),
        "notes": release.notes.as_str(),
    })
}
