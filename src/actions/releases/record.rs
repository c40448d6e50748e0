//! A release as the commands print it and the desk returns it.

use serde_json::{Value, json};

use crate::domain::releases::{BuildNumber, MacosVersion, Release, Releases, Signature};
use crate::domain::time::Timestamp;

/// `releases` say which one is the newest.
pub fn release_record(release: &Release, releases: &Releases) -> Value {
    json!({
        "version": release.version.to_string(),
        "newest": releases.newest() == Some(release),
        "prerelease": release.prerelease,
        "published": release.published.rfc3339(),
        "withdrawn": release.withdrawn.map(Timestamp::rfc3339),
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
