//! Published releases of the app, and which of them is the newest.
//!
//! Nothing here knows where disk images are stored or how they are served.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

use super::channel::{Channel, RolloutDays};
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
    /// Only a release of the stable channel is the newest for the public.
    pub channel: Channel,
    /// Whether Sparkle urges people to install it.
    pub critical: bool,
    pub phased: RolloutDays,
    pub published: Timestamp,
    pub withdrawn: Option<Withdrawal>,
}

/// When and why a release was withdrawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withdrawal {
    pub at: Timestamp,
    pub reason: Option<Reason>,
}

impl Release {
    /// What Sparkle compares.
    pub fn build_or_version(&self) -> &str {
        self.build.as_ref().map_or(self.version.as_str(), BuildNumber::as_str)
    }

    /// Whether apps that get this channel are offered the release.
    pub(super) fn is_in(&self, channel: &Channel) -> bool {
        self.channel.is_stable() || self.channel == *channel
    }
}

/// What is changed of a release after it was published. `None` leaves it as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReleaseEdit {
    pub notes: Option<Notes>,
    pub build: Option<BuildNumber>,
    pub signature: Option<Signature>,
    pub minimum_macos: Option<MacosVersion>,
    pub channel: Option<Channel>,
    pub critical: Option<bool>,
    pub phased: Option<RolloutDays>,
    pub published: Option<Timestamp>,
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
        self.newest_of(&Channel::stable())
    }

    pub fn newest_of(&self, channel: &Channel) -> Option<&Release> {
        self.available().find(|release| release.channel == *channel)
    }

    /// Available releases of the stable channel, then those of each other channel.
    pub fn by_channel(&self) -> Vec<&Release> {
        let mut releases: Vec<_> = self.available().collect();
        releases.sort_by_key(|release| (!release.channel.is_stable(), &release.channel));
        releases
    }

    /// The critical release that Sparkle should speak of to those who update to this one from before it.
    pub fn critical_up_to(&self, release: &Release) -> Option<&Release> {
        let is_it =
            |other: &&Release| other.critical && other.version <= release.version && other.is_in(&release.channel);
        self.available().find(is_it)
    }

    pub fn find_version(&self, version: &Version) -> Option<&Release> {
        self.releases.iter().find(|release| release.version == *version)
    }

    /// Another release with the same image: somebody may have taken the wrong file.
    pub fn same_image(&self, release: &Release) -> Option<&Release> {
        self.iter().find(|other| other.version != release.version && other.sha256 == release.sha256)
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

/// Why a release was withdrawn, in one line of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason(String);

impl Reason {
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let text = clean_text(text).split_whitespace().collect::<Vec<_>>().join(" ");
        match text.chars().count() {
            0 => Err(Invalid::new("it is empty")),
            1..=limits::MAX_REASON_CHARS => Ok(Self(text)),
            _ => Err(Invalid::new(format!("it has more than {} characters", limits::MAX_REASON_CHARS))),
        }
    }
}

/// Unused bits at the end are ignored, as Sparkle does.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// An `EdDSA` signature as Sparkle's `sign_update` prints it: 64 bytes in base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature(String);

text_types!(Notes, Reason, Signature);
from_stored!(Reason, Signature);

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
            channel: if version(text).is_prerelease() { Channel::beta() } else { Channel::stable() },
            critical: false,
            phased: RolloutDays::default(),
            published: Timestamp::from_unix_millis(0),
            withdrawn: None,
        }
    }

    #[test]
    fn the_newest_is_the_highest_version_that_is_neither_withdrawn_nor_a_prerelease() {
        let withdrawn = Release {
            withdrawn: Some(Withdrawal { at: Timestamp::from_unix_millis(1), reason: None }),
            ..release("1.11.0")
        };
        let releases = Releases::new(vec![release("1.9.3"), withdrawn, release("2.0.0-beta.1"), release("1.10.0")]);
        assert_eq!(releases.newest().unwrap().version, version("1.10.0"));
        assert_eq!(releases.available().count(), 3);
        assert_eq!(Releases::new(vec![release("2.0.0-beta.1")]).newest(), None);
    }

    #[test]
    fn every_channel_has_a_newest_and_the_stable_one_comes_first() {
        let nightly = |text| Release { channel: Channel::parse("nightly").unwrap(), ..release(text) };
        let releases =
            [nightly("3.1.0-1"), release("2.0.0-beta.1"), release("1.4.0"), release("1.5.0"), nightly("3.0.0-9")];
        let releases = Releases::new(releases.into());
        let newest =
            |channel| releases.newest_of(&Channel::parse(channel).unwrap()).map(|newest| newest.version.to_string());
        assert_eq!(newest("stable").unwrap(), "1.5.0");
        assert_eq!(newest("beta").unwrap(), "2.0.0-beta.1");
        assert_eq!(newest("nightly").unwrap(), "3.1.0-1");
        assert_eq!(newest("alpha"), None);
        let versions: Vec<_> = releases.by_channel().into_iter().map(|release| release.version.to_string()).collect();
        assert_eq!(versions, ["1.5.0", "1.4.0", "2.0.0-beta.1", "3.1.0-1", "3.0.0-9"]);
    }

    #[test]
    fn a_reason_is_one_line() {
        assert_eq!(Reason::parse(" It lost\n\u{1b}data. ").unwrap().as_str(), "It lost data.");
        for text in ["", " \n", "\u{1b}", &"x".repeat(501)] {
            assert!(Reason::parse(text).is_err(), "{text}");
        }
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
