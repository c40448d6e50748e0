//! Published releases of the app, and which of them is the newest.
//!
//! Nothing here knows where disk images are stored or how they are served.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

use super::disk_image::ImageName;
use super::version::{BuildNumber, MacosVersion, Version};
use crate::domain::limits;
use crate::domain::parse::{Invalid, from_stored, text_types};
use crate::domain::sha256::Sha256;
use crate::domain::text::clean_text;
use crate::domain::time::Timestamp;

/// A version of the app that was published. It may be withdrawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    pub version: Version,
    /// The file name under which the image is served.
    pub file: ImageName,
    /// The URL of an image that is hosted elsewhere.
    pub external_url: Option<String>,
    pub length: u64,
    pub sha256: Sha256,
    pub notes: Notes,
    pub build: Option<BuildNumber>,
    /// The `EdDSA` signature that Sparkle checks.
    pub signature: Option<Signature>,
    pub minimum_macos: Option<MacosVersion>,
    /// A pre-release is never the newest for the public.
    pub prerelease: bool,
    pub published: Timestamp,
    pub withdrawn: Option<Timestamp>,
}

/// All releases ever published, the highest version first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Releases {
    releases: Vec<Release>,
    unreadable: Vec<String>,
}

impl Releases {
    pub fn new(releases: Vec<Release>) -> Self {
        Self::with_unreadable(releases, Vec::new())
    }

    /// `unreadable` are the versions of stored releases that this program cannot read, and leaves out.
    pub fn with_unreadable(mut releases: Vec<Release>, unreadable: Vec<String>) -> Self {
        releases.sort_by(|a, b| b.version.cmp(&a.version));
        Self { releases, unreadable }
    }

    /// All releases, including withdrawn ones.
    pub fn iter(&self) -> impl Iterator<Item = &Release> {
        self.releases.iter()
    }

    /// The versions of releases that cannot be read and are not offered.
    pub fn unreadable(&self) -> &[String] {
        &self.unreadable
    }

    /// Releases that are not withdrawn.
    pub fn available(&self) -> impl Iterator<Item = &Release> {
        self.releases.iter().filter(|release| release.withdrawn.is_none())
    }

    /// The release that the public gets.
    pub fn newest(&self) -> Option<&Release> {
        self.available().find(|release| !release.prerelease)
    }

    pub fn find_version(&self, version: &Version) -> Option<&Release> {
        self.releases.iter().find(|release| release.version == *version)
    }

    pub fn find_file(&self, file: &str) -> Option<&Release> {
        self.releases.iter().find(|release| release.file.as_str() == file)
    }
}

/// Release notes in Markdown, without characters that feeds cannot contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes(String);

impl Notes {
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        if text.len() > limits::MAX_RELEASE_NOTES_BYTES {
            let max = limits::MAX_RELEASE_NOTES_BYTES / 1024;
            return Err(Invalid::new(format!("they are larger than {max} KiB; shorten them and link to the rest")));
        }
        Ok(Self::from_stored(text))
    }

    /// Restores notes from the database, however long they are.
    pub fn from_stored(text: &str) -> Self {
        // The first line may be indented, which makes it code.
        let text = clean_text(text);
        let first_line = text.len() - text.trim_start().len();
        let start = text[..first_line].rfind('\n').map_or(0, |newline| newline + 1);
        Self(text[start..].trim_end().to_owned())
    }
}

/// Unused bits at the end are ignored, as Sparkle does.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// An `EdDSA` signature as Sparkle's `sign_update` prints it: 64 bytes in base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature(String);

text_types!(Notes, Signature);
from_stored!(Signature);

impl Signature {
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        match BASE64.decode(text) {
            Ok(signature) if signature.len() == 64 => Ok(Self(text.to_owned())),
            _ => Err(Invalid::new(
                "it is not a signature as printed by Sparkle's sign_update (88 characters that end in ==)",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::releases::PublishRejection;

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    fn file(text: &str) -> ImageName {
        ImageName::new("Troupe", &version(text)).unwrap()
    }

    fn release(text: &str) -> Release {
        Release {
            version: version(text),
            file: file(text),
            external_url: None,
            length: 1,
            sha256: Sha256::of(b"image"),
            notes: Notes::default(),
            build: None,
            signature: None,
            minimum_macos: None,
            prerelease: version(text).is_prerelease(),
            published: Timestamp::from_unix_millis(0),
            withdrawn: None,
        }
    }

    fn check(releases: &Releases, text: &str, prerelease: bool, force: bool) -> Result<(), PublishRejection> {
        releases.check_publishable(&version(text), &file(text), prerelease, force)
    }

    #[test]
    fn the_newest_is_the_highest_version_that_is_neither_withdrawn_nor_a_prerelease() {
        let withdrawn = Release { withdrawn: Some(Timestamp::from_unix_millis(1)), ..release("1.11.0") };
        let releases = Releases::new(vec![release("1.9.3"), withdrawn, release("2.0.0-beta.1"), release("1.10.0")]);
        assert_eq!(releases.newest().unwrap().version, version("1.10.0"));
        assert_eq!(releases.available().count(), 3);
        assert_eq!(Releases::new(vec![release("2.0.0-beta.1")]).newest(), None);
    }

    #[test]
    fn a_version_is_used_once_and_must_be_newer() {
        let withdrawn = Release { withdrawn: Some(Timestamp::from_unix_millis(1)), ..release("1.5.0") };
        let releases = Releases::new(vec![release("1.4.0"), withdrawn, release("2.0.0-beta.2")]);
        assert_eq!(check(&releases, "1.4.1", false, false), Ok(()));
        assert_eq!(check(&releases, "1.4.0", false, true), Err(PublishRejection::VersionUsed(version("1.4.0"))));
        assert_eq!(check(&releases, "1.5.0", false, true), Err(PublishRejection::VersionWithdrawn(version("1.5.0"))));
        assert_eq!(
            check(&releases, "1.3.9", false, false),
            Err(PublishRejection::NotNewer(version("1.3.9"), version("1.4.0")))
        );
        assert_eq!(check(&releases, "1.3.9", false, true), Ok(()));
        assert_eq!(
            check(&releases, "2.0.0-beta.1", true, false),
            Err(PublishRejection::NotNewer(version("2.0.0-beta.1"), version("2.0.0-beta.2")))
        );
        assert_eq!(
            check(&releases, "2.0.0-beta.3", false, false),
            Err(PublishRejection::PrereleaseFlagMissing(version("2.0.0-beta.3")))
        );
        let other_name = releases.check_publishable(&version("1.6.0"), &file("1.4.0"), false, false);
        assert_eq!(other_name, Err(PublishRejection::NameUsed(file("1.4.0"))));
    }

    #[test]
    fn notes_have_no_control_characters_and_no_empty_lines_around_them() {
        let notes = |text: &str| Notes::parse(text).unwrap().as_str().to_owned();
        assert_eq!(notes("\u{feff}# New\r\n\u{0}\u{1b}text\n```\n# code\n```\n\n"), "# New\ntext\n```\n# code\n```");
        assert_eq!(notes(" \n\n    code\n text \n"), "    code\n text");
        assert_eq!(notes(" \n "), "");
        assert!(Notes::parse(&"x".repeat(65 * 1024)).is_err());
    }

    #[test]
    fn signatures_are_64_bytes_in_base64() {
        let good = format!("{}==", "aB3+/x".repeat(15).chars().take(86).collect::<String>());
        assert_eq!(Signature::parse(&good).unwrap().as_str(), good);
        for bad in ["", "==", "abc", &good[1..], &good.replace('+', "-")] {
            assert!(Signature::parse(bad).is_err(), "{bad}");
        }
    }
}
