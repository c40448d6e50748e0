//! Published releases of the app, and which of them is the newest.
//!
//! Nothing here knows where disk images are stored or how they are served.

use super::limits;
use super::sha256::Sha256;
use super::text::clean_text;
use super::time::Timestamp;
use super::version::{BuildNumber, MacosVersion, Version};

/// A version of the app that was published. It may be withdrawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    pub version: Version,
    /// The file name under which the image is served.
    pub file: String,
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

/// Why a release cannot be published.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishRejection {
    #[error("version {0} is already published; choose a higher one")]
    VersionUsed(Version),
    #[error("version {0} was withdrawn and cannot be used again; choose a higher one")]
    VersionWithdrawn(Version),
    #[error("the file name {0} is already used; choose a higher version")]
    NameUsed(String),
    #[error("{0} is not newer than {1}; add --force to publish it anyway, which does not make it the newest")]
    NotNewer(Version, Version),
    #[error("{0} is a pre-release version; add --prerelease to publish it as one")]
    PrereleaseFlagMissing(Version),
}

/// All releases ever published, the highest version first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Releases(Vec<Release>);

impl Releases {
    #[must_use]
    pub fn new(mut releases: Vec<Release>) -> Self {
        releases.sort_by(|a, b| b.version.cmp(&a.version));
        Self(releases)
    }

    /// All releases, including withdrawn ones.
    pub fn iter(&self) -> impl Iterator<Item = &Release> {
        self.0.iter()
    }

    /// Releases that are not withdrawn.
    pub fn available(&self) -> impl Iterator<Item = &Release> {
        self.0.iter().filter(|release| release.withdrawn.is_none())
    }

    /// The release that the public gets.
    #[must_use]
    pub fn newest(&self) -> Option<&Release> {
        self.available().find(|release| !release.prerelease)
    }

    #[must_use]
    pub fn find_version(&self, version: &Version) -> Option<&Release> {
        self.0.iter().find(|release| release.version == *version)
    }

    #[must_use]
    pub fn find_file(&self, file: &str) -> Option<&Release> {
        self.0.iter().find(|release| release.file == file)
    }

    /// Checks whether a release of this version may be published.
    ///
    /// # Errors
    /// Fails with the reason why not.
    pub fn check_publishable(
        &self,
        version: &Version,
        file: &str,
        prerelease: bool,
        force: bool,
    ) -> Result<(), PublishRejection> {
        if let Some(known) = self.find_version(version) {
            return Err(match known.withdrawn {
                Some(_) => PublishRejection::VersionWithdrawn(version.clone()),
                None => PublishRejection::VersionUsed(version.clone()),
            });
        }
        if self.find_file(file).is_some() {
            return Err(PublishRejection::NameUsed(file.to_owned()));
        }
        if version.is_prerelease() && !prerelease {
            return Err(PublishRejection::PrereleaseFlagMissing(version.clone()));
        }
        let highest = self.available().find(|release| prerelease || !release.prerelease);
        match highest {
            Some(highest) if !force && highest.version > *version => {
                Err(PublishRejection::NotNewer(version.clone(), highest.version.clone()))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the app's name with only the characters that are safe in URLs and file names.
#[must_use]
pub fn file_stem(app: &str) -> String {
    let words = app.split_whitespace().collect::<Vec<_>>().join("-");
    let stem: String = words.chars().filter(|c| c.is_ascii_alphanumeric() || ['-', '_'].contains(c)).collect();
    if stem.is_empty() { "App".to_owned() } else { stem }
}

#[must_use]
pub fn file_name(app: &str, version: &Version) -> String {
    format!("{}-{version}.dmg", file_stem(app))
}

/// Release notes in Markdown, without characters that feeds cannot contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("they are larger than {} KiB; shorten them and link to the rest", limits::MAX_RELEASE_NOTES_BYTES / 1024)]
pub struct NotesTooLong;

impl Notes {
    /// # Errors
    /// Fails if the text is too long.
    pub fn parse(text: &str) -> Result<Self, NotesTooLong> {
        if text.len() > limits::MAX_RELEASE_NOTES_BYTES {
            return Err(NotesTooLong);
        }
        Ok(Self(clean_text(text).trim().to_owned()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the notes with headings moved below the second level, for a page that uses the first two.
    /// Underlined headings are rewritten with `#`.
    #[must_use]
    pub fn below_second_heading(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        let mut fenced = false;
        for line in self.0.lines() {
            let bare = line.trim();
            fenced ^= bare.starts_with("```") || bare.starts_with("~~~");
            let above = lines.last_mut().filter(|above| !fenced && above.starts_with(char::is_alphanumeric));
            match (above, bare.trim_matches('='), bare.trim_matches('-')) {
                (Some(above), "", _) if !bare.is_empty() => *above = format!("### {above}"),
                (Some(above), _, "") if !bare.is_empty() => *above = format!("#### {above}"),
                _ if !fenced && bare.starts_with('#') => {
                    let level = bare.bytes().take_while(|byte| *byte == b'#').count();
                    let deeper = if bare[level..].starts_with(char::is_whitespace) { 2 } else { 0 };
                    lines.push(format!("{}{}", "#".repeat((level + deeper).min(6)), &bare[level..]));
                }
                _ => lines.push(line.to_owned()),
            }
        }
        lines.join("\n")
    }
}

/// An `EdDSA` signature as Sparkle's `sign_update` prints it: 64 bytes in base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not a signature as printed by Sparkle's sign_update (88 characters that end in ==)")]
pub struct InvalidSignature;

impl Signature {
    /// # Errors
    /// Fails if `text` is not 64 bytes in base64.
    pub fn parse(text: &str) -> Result<Self, InvalidSignature> {
        let digits = text.strip_suffix("==").ok_or(InvalidSignature)?;
        let fits = digits.len() == 86
            && digits.bytes().all(|digit| digit.is_ascii_alphanumeric() || [b'+', b'/'].contains(&digit));
        if fits { Ok(Self(text.to_owned())) } else { Err(InvalidSignature) }
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    fn release(text: &str) -> Release {
        Release {
            version: version(text),
            file: file_name("Troupe", &version(text)),
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
        releases.check_publishable(&version(text), &file_name("Troupe", &version(text)), prerelease, force)
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
        let other_name = releases.check_publishable(&version("1.6.0"), "Troupe-1.4.0.dmg", false, false);
        assert_eq!(other_name, Err(PublishRejection::NameUsed("Troupe-1.4.0.dmg".to_owned())));
    }

    #[test]
    fn file_names_are_safe_in_urls() {
        assert_eq!(file_name("Troupe", &version("1.4.0")), "Troupe-1.4.0.dmg");
        assert_eq!(file_stem("Tea & Biscuits /2"), "Tea--Biscuits-2");
        assert_eq!(file_stem("茶"), "App");
    }

    #[test]
    fn notes_have_no_control_characters_and_their_headings_start_at_the_third_level() {
        let notes = Notes::parse("\u{feff}# New\r\n\u{0}\u{1b}text\n```\n# code\n```\n#### Deep\n#hash\n").unwrap();
        assert_eq!(notes.as_str(), "# New\ntext\n```\n# code\n```\n#### Deep\n#hash");
        assert_eq!(notes.below_second_heading(), "### New\ntext\n```\n# code\n```\n###### Deep\n#hash");
        let underlined = Notes::parse("New\n===\ntext\n\nFixed\n---\n- one\n---\n   # Told").unwrap();
        assert_eq!(underlined.below_second_heading(), "### New\ntext\n\n#### Fixed\n- one\n---\n### Told");
        assert_eq!(Notes::parse(&"x".repeat(65 * 1024)), Err(NotesTooLong));
    }

    #[test]
    fn signatures_are_64_bytes_in_base64() {
        let good = format!("{}==", "aB3+/x".repeat(15).chars().take(86).collect::<String>());
        assert_eq!(Signature::parse(&good).unwrap().as_str(), good);
        for bad in ["", "==", "abc", &good[1..], &good.replace('+', "-")] {
            assert_eq!(Signature::parse(bad), Err(InvalidSignature), "{bad}");
        }
    }
}
