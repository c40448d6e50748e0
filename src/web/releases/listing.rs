//! Releases as pages, templates and programs read about them.

use serde_json::{Value, json};

use crate::domain::base_url::BaseUrl;
use crate::domain::release::{Release, Releases};
use crate::domain::version::SystemVersion;

pub(crate) const RELEASES_JSON: &str = "/releases.json";

/// `/releases.json`: what is on offer, the highest version first.
pub(crate) fn releases_json(app: &str, releases: &Releases, base_url: &BaseUrl) -> Value {
    let listed = releases.offered().map(|release| {
        json!({
            "version": release.version.to_string(),
            "date": release.published.rfc3339(),
            "length": release.length,
            "sha256": release.sha256.hex(),
            "minimum_macos": release.minimum_macos.as_ref().map(SystemVersion::as_str),
            "prerelease": release.prerelease,
            "notes": release.notes.as_str(),
            "url": url(release, base_url),
        })
    });
    json!({
        "app": app,
        "latest": releases.newest().map(|release| release.version.to_string()),
        "releases": listed.collect::<Vec<_>>(),
    })
}

/// What templates know of the newest release: nothing while there is none.
pub(crate) fn newest(releases: &Releases, base_url: &BaseUrl) -> Value {
    releases.newest().map_or(Value::Null, |release| in_words(release, base_url))
}

/// What templates know of all that is on offer.
pub(crate) fn offered(releases: &Releases, base_url: &BaseUrl) -> Value {
    releases.offered().map(|release| in_words(release, base_url)).collect()
}

fn in_words(release: &Release, base_url: &BaseUrl) -> Value {
    json!({
        "version": release.version.to_string(),
        "date": release.published.date(),
        "length": release.length,
        "size": size(release.length),
        "sha256": release.sha256.hex(),
        "anchor": anchor(release),
        "file": release.file,
        "url": url(release, base_url),
        "minimum_macos": release.minimum_macos.as_ref().map(SystemVersion::as_str),
        "prerelease": release.prerelease,
        "notes": release.notes.below_second_heading(),
    })
}

/// Where the image of this very version is.
pub(super) fn url(release: &Release, base_url: &BaseUrl) -> String {
    release.elsewhere.clone().unwrap_or_else(|| base_url.to(&path(release)))
}

pub(super) fn path(release: &Release) -> String {
    format!("/releases/{}", release.file)
}

/// Where it stands on the page of releases.
pub(super) fn anchor(release: &Release) -> String {
    format!("v{}", release.version.to_string().replace('.', "-"))
}

/// As the Finder counts: a megabyte is a million bytes.
pub(crate) fn size(bytes: u64) -> String {
    let (unit, name) = match bytes {
        0..1_000 => return format!("{bytes} bytes"),
        1_000..1_000_000 => (1_000, "KB"),
        1_000_000..1_000_000_000 => (1_000_000, "MB"),
        _ => (1_000_000_000, "GB"),
    };
    let tenths = bytes / (unit / 10);
    match tenths % 10 {
        0 => format!("{} {name}", tenths / 10),
        rest => format!("{}.{rest} {name}", tenths / 10),
    }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_told_as_the_finder_tells_them() {
        let told = [0, 999, 1_000, 1_250_000, 48_000_000, 1_073_741_824].map(size);
        assert_eq!(told, ["0 bytes", "999 bytes", "1 KB", "1.2 MB", "48 MB", "1 GB"]);
    }
}
