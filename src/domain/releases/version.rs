//! Versions of the app, ordered as semantic versioning orders them, and its build numbers, ordered as Sparkle orders them.

use std::cmp::Ordering;
use std::fmt;

use crate::domain::limits;
use crate::domain::parse::{Invalid, from_stored, text_types};

/// `1.4.0`, `1.4` or `2.0.0-beta.1`. Shown as it was written, and compared with zeros for missing numbers: `1.4` and `1.4.0` are
/// one version. Build metadata (`+7`) is not allowed, because it does not order versions.
#[derive(Clone, Debug)]
pub struct Version {
    written: String,
    complete: semver::Version,
}

impl Version {
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let (numbers, rest) = text.split_at(text.find(['-', '+']).unwrap_or(text.len()));
        let missing = ".0".repeat(2_usize.saturating_sub(numbers.matches('.').count()));
        match semver::Version::parse(&format!("{numbers}{missing}{rest}")) {
            Ok(complete) if complete.build.is_empty() => Ok(Self { written: text.to_owned(), complete }),
            Ok(_) => Err(Invalid::new("it has build metadata after a plus sign; remove it")),
            Err(_) => Err(Invalid::new("it is not of the form 1.4, 1.4.0 or 2.0.0-beta.1")),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// The version with all three numbers, which is the same however it was written.
    pub fn key(&self) -> String {
        self.complete.to_string()
    }

    /// Whether the version has a pre-release part, such as `-beta.1`.
    pub fn is_prerelease(&self) -> bool {
        !self.complete.pre.is_empty()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.complete == other.complete
    }
}

impl Eq for Version {}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.complete.cmp(&other.complete)
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

/// A piece of a build number. The order is that of Sparkle's `SUStandardVersionComparator`: letters are before the end, which is
/// why 2b1 is lower than 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum BuildPart<'a> {
    Letters(&'a str),
    End,
    Dot,
    Number(i64),
}

/// Compares build numbers, or versions that stand for them, as Sparkle does. What follows a hyphen does not count.
pub(super) fn compare_builds(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (build_parts(a), build_parts(b));
    pad(&mut a, &b);
    pad(&mut b, &a);
    a.cmp(&b)
}

fn build_parts(text: &str) -> Vec<BuildPart<'_>> {
    let mut rest = text.split('-').next().unwrap_or_default();
    let mut parts = Vec::new();
    while let Some(first) = rest.chars().next() {
        let is_same_kind = |c: char| c != '.' && first != '.' && c.is_ascii_digit() == first.is_ascii_digit();
        let length =
            rest[first.len_utf8()..].find(|c| !is_same_kind(c)).map_or(rest.len(), |more| first.len_utf8() + more);
        let (part, after) = rest.split_at(length);
        parts.push(match first {
            '.' => BuildPart::Dot,
            '0'..='9' => BuildPart::Number(part.parse().unwrap_or(i64::MAX)),
            _ => BuildPart::Letters(part),
        });
        rest = after;
    }
    parts.push(BuildPart::End);
    parts
}

/// Gives the numbers at the start as many parts as `like` has there, so that 1.4 equals 1.4.0, and 1.4b2 is beside 1.4.0b1.
fn pad<'a>(parts: &mut Vec<BuildPart<'a>>, like: &[BuildPart<'a>]) {
    let numbers = |parts: &[BuildPart]| parts.iter().take_while(|part| **part > BuildPart::End).count();
    let (present, wanted) = (numbers(parts), numbers(like));
    let missing = like.iter().take(wanted).skip(present);
    let zeros = missing.map(|part| if *part == BuildPart::Dot { BuildPart::Dot } else { BuildPart::Number(0) });
    drop(parts.splice(present..present, zeros));
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
    fn a_version_with_fewer_numbers_is_the_same_one_and_is_shown_as_it_was_written() {
        for (short, complete) in [("2", "2.0.0"), ("2.1", "2.1.0"), ("2.1-beta.1", "2.1.0-beta.1")] {
            let (short, complete) = (Version::parse(short).unwrap(), Version::parse(complete).unwrap());
            assert!(short == complete && short.cmp(&complete).is_eq() && short.to_string() != complete.to_string());
            assert_eq!((short.key(), complete.key()), (complete.to_string(), complete.to_string()));
        }
        assert!(Version::parse("2.1").unwrap() < Version::parse("2.1.1").unwrap());
    }

    #[test]
    fn builds_are_ordered_as_sparkle_orders_them() {
        // From lowest to highest.
        let builds = [
            "0.9", "1.0a1", "1.0b1", "1.0b2", "1.0", "1.0.1", "1.2", "1.10", "77", "141", "1042", "1042.1", "20261119",
        ];
        for (position, build) in builds.iter().enumerate() {
            for (other_position, other) in builds.iter().enumerate() {
                assert_eq!(compare_builds(build, other), position.cmp(&other_position), "{build} {other}");
            }
        }
        for (a, b) in [("1.0", "1.0.0"), ("1", "1.0"), ("1.0b1", "1.0.0b1"), ("007", "7"), ("2.0.0-beta.1", "2.0.0")] {
            assert!(compare_builds(a, b).is_eq() && compare_builds(b, a).is_eq(), "{a} {b}");
        }
    }

    #[test]
    fn invalid_versions_are_rejected() {
        for text in
            ["", ".", "1.", "1..0", "-beta", "v1.4.0", "1.4.0.0", "2.01", "01.4.0", "1.4.0 ", "1.4.0/x", "latest"]
        {
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
