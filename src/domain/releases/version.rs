//! Versions of the app, ordered as semantic versioning orders them.

use std::fmt;

use crate::domain::limits;
use crate::domain::parse::{Invalid, from_stored, text_types};

/// `1.4.0`, or `2.0.0-beta.1`. Build metadata (`+7`) is not allowed, because it does not order versions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(semver::Version);

impl Version {
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        match semver::Version::parse(text) {
            Ok(version) if version.build.is_empty() => Ok(Self(version)),
            Ok(_) => Err(Invalid::new("it has build metadata after a plus sign; remove it")),
            Err(_) => Err(Invalid::new("it is not of the form 1.4.0 or 2.0.0-beta.1")),
        }
    }

    /// Whether the version has a pre-release part, such as `-beta.1`.
    pub fn is_prerelease(&self) -> bool {
        !self.0.pre.is_empty()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A version of macOS, as `14` or `14.6.1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MacosVersion(String);

impl MacosVersion {
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let numbers: Vec<_> = text.split('.').collect();
        let fits = numbers.len() <= 3
            && numbers
                .iter()
                .all(|number| (1..=3).contains(&number.len()) && number.bytes().all(|digit| digit.is_ascii_digit()));
        if fits { Ok(Self(text.to_owned())) } else { Err(Invalid::new("it is not a version of macOS such as 14.0")) }
    }
}

/// The app's `CFBundleVersion`, if it differs from its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildNumber(String);

text_types!(MacosVersion, BuildNumber);
from_stored!(MacosVersion, BuildNumber);

impl BuildNumber {
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let fits = (1..=limits::MAX_BUILD_CHARS).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.');
        if fits { Ok(Self(text.to_owned())) } else { Err(Invalid::new("it is not a build number such as 1042")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_number_and_prereleases_come_first() {
        let texts = ["1.4.0-beta.2", "1.4.0-beta.10", "1.4.0", "1.9.3", "1.10.0"];
        let versions = texts.map(|text| Version::parse(text).unwrap());
        assert!(versions.is_sorted());
        assert_eq!(versions.map(|version| version.to_string()), texts);
    }

    #[test]
    fn invalid_versions_are_rejected() {
        for text in ["", "1", "1.4", "v1.4.0", "1.4.0.0", "01.4.0", "1.4.0 ", "1.4.0/x", "latest"] {
            assert!(Version::parse(text).unwrap_err().to_string().starts_with("it is not of the form"), "{text}");
        }
        assert!(Version::parse("1.4.0+7").unwrap_err().to_string().contains("build metadata"));
    }

    #[test]
    fn macos_versions_have_one_to_three_numbers() {
        for text in ["14", "14.0", "14.6.1"] {
            assert_eq!(MacosVersion::parse(text).unwrap().as_str(), text);
        }
        for text in ["", "14.", ".1", "14.x", "1.2.3.4", "macOS 14", "1400.0"] {
            assert!(MacosVersion::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn builds_are_digits_letters_and_dots() {
        assert_eq!(BuildNumber::parse("1042.b2").unwrap().as_str(), "1042.b2");
        for text in ["", "10 42", "<1>", &"1".repeat(33)] {
            assert!(BuildNumber::parse(text).is_err(), "{text}");
        }
    }
}
