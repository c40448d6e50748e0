//! A request of the appcast in which Sparkle asks for updates: what is counted of it, and nothing else.
//!
//! Sparkle sends `User-Agent: NAME/1.4.0 Sparkle/2.6.4`, with the name and the `CFBundleShortVersionString` of the app. If the
//! app has asked the user, the query has a profile of the system about once a week. Any program can send both, so a version
//! counts only if it was published, and all other values are those of fixed sets.

use super::counts::CountedEvent;
use crate::domain::releases::{Releases, Version};

/// Stands for a version that was never published, and for systems and processors that are not counted separately.
const OTHER: &str = "other";

/// Begins the word after the one that ends with the version of the app.
const SPARKLE: &[u8] = b"Sparkle/";

/// The part of Sparkle's `cputype` that names the processor, without the flags of its ABI (`CPU_ARCH_MASK` of `mach/machine.h`).
const CPU_TYPE_MASK: u32 = 0x00ff_ffff;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateCheck {
    version: String,
    macos: Option<String>,
    processor: Option<&'static str>,
}

impl UpdateCheck {
    /// Returns `None` if the request does not come from Sparkle. `releases` are those ever published.
    pub fn parse(user_agent: &[u8], query: Option<&str>, releases: &Releases) -> Option<Self> {
        // The name of an app may have spaces and slashes, and be in any encoding.
        let mut words = user_agent.rsplit(|byte| *byte == b' ');
        words.find(|word| word.starts_with(SPARKLE))?;
        let version = words.next()?.rsplit(|byte| *byte == b'/').next()?;
        let version = published_version(version, releases).unwrap_or_else(|| OTHER.to_owned());
        let mut check = Self { version, macos: None, processor: None };
        // As they were sent: Sparkle encodes neither digits nor dots. Splitting bytes takes half as long as splitting text.
        for parameter in query.unwrap_or_default().as_bytes().split(|byte| *byte == b'&') {
            let value = |name: &[u8]| str::from_utf8(parameter.strip_prefix(name)?).ok();
            if let Some(version) = value(b"osVersion=") {
                check.macos = Some(macos(version));
            } else if let Some(cpu_type) = value(b"cputype=") {
                check.processor = Some(processor(cpu_type));
            }
        }
        Some(check)
    }

    /// What is counted, by which name, each alone.
    pub fn counts(self) -> impl Iterator<Item = (CountedEvent, String)> {
        let macos = self.macos.map(|macos| (CountedEvent::UpdateMacos, macos));
        let processor = self.processor.map(|processor| (CountedEvent::UpdateProcessor, processor.to_owned()));
        std::iter::once((CountedEvent::UpdateCheck, self.version)).chain(macos).chain(processor)
    }
}

fn published_version(sent: &[u8], releases: &Releases) -> Option<String> {
    let version = Version::parse(str::from_utf8(sent).ok()?).ok()?;
    releases.find_version(&version).map(|release| release.version.to_string())
}

/// The major version. Those after 15 are named by years.
fn macos(version: &str) -> String {
    let major = version.split('.').next().and_then(|major| major.parse::<u8>().ok());
    major.filter(|major| matches!(major, 10..=15 | 26..=45)).map_or_else(|| OTHER.to_owned(), |major| major.to_string())
}

fn processor(cpu_type: &str) -> &'static str {
    match cpu_type.parse::<u32>().map(|cpu_type| cpu_type & CPU_TYPE_MASK) {
        Ok(7) => "intel",
        Ok(12) => "arm64",
        _ => OTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::releases::{Channel, ImageName, Notes, Release, RolloutDays, Withdrawal};
    use crate::domain::sha256::Sha256;
    use crate::domain::time::Timestamp;

    fn releases() -> Releases {
        let release = |text: &str| {
            let version = Version::parse(text).unwrap();
            Release {
                file: ImageName::new("Troupe", &version).unwrap(),
                channel: Channel::stable(),
                critical: false,
                phased: RolloutDays::default(),
                version,
                external_url: None,
                length: 1,
                sha256: Sha256::of(b"image"),
                notes: Notes::default(),
                build: None,
                signature: None,
                minimum_macos: None,
                published: Timestamp::from_unix_millis(0),
                withdrawn: Some(Withdrawal { at: Timestamp::from_unix_millis(1), reason: None }),
            }
        };
        Releases::new(["1.4.0", "2.0.0-beta.1"].map(release).into())
    }

    fn counts(user_agent: &[u8], query: Option<&str>) -> Option<Vec<(CountedEvent, String)>> {
        UpdateCheck::parse(user_agent, query, &releases()).map(|check| check.counts().collect())
    }

    fn version(user_agent: &[u8]) -> Option<String> {
        counts(user_agent, None).map(|counts| counts[0].1.clone())
    }

    #[test]
    fn the_version_is_that_of_the_app_whatever_its_name() {
        for app in ["Troupe", "Tea Time", "Caf\u{e9}", "Tea%20Time", "a/b", "a Sparkle/2.0", ""] {
            let user_agent = format!("{app}/2.0.0-beta.1 Sparkle/2.6.4");
            assert_eq!(version(user_agent.as_bytes()).as_deref(), Some("2.0.0-beta.1"), "{user_agent}");
        }
        assert_eq!(version(b"Caf\xe9/1.4.0 Sparkle/2.6.4").as_deref(), Some("1.4.0"));
        assert_eq!(version(b"Troupe/1.4.0 Sparkle/2.6.4 (of our own)").as_deref(), Some("1.4.0"));
    }

    #[test]
    fn a_version_that_was_never_published_is_other() {
        for sent in
            [&b"1.4.1"[..], b"", b"?", b"01.4.0", b"1.4.0\xff", b"1.4.0 ", b"1.4.0 (77)", b"99999999999999999999.0.0"]
        {
            let user_agent = [b"Troupe/", sent, b" Sparkle/2.6.4"].concat();
            assert_eq!(version(&user_agent).as_deref(), Some(OTHER), "{}", user_agent.escape_ascii());
        }
    }

    #[test]
    fn what_does_not_come_from_sparkle_is_no_update_check() {
        for user_agent in
            ["", "Mozilla/5.0 Safari/605.1.15", "Sparkle/2.6.4", "Troupe/1.4.0 Sparkler/1", "Troupe/1.4.0"]
        {
            assert_eq!(counts(user_agent.as_bytes(), Some("osVersion=15.1&cputype=7")), None, "{user_agent}");
        }
    }

    #[test]
    fn a_profile_is_counted_by_major_macos_and_by_processor() {
        let of = |query: &str| {
            let counts = counts(b"Troupe/1.4.0 Sparkle/2.6.4", Some(query)).unwrap();
            assert_eq!(counts[0], (CountedEvent::UpdateCheck, "1.4.0".to_owned()));
            let name = |what| counts.iter().find(|(counted, _)| *counted == what).map(|(_, name)| name.clone());
            [name(CountedEvent::UpdateMacos), name(CountedEvent::UpdateProcessor)]
        };
        for (query, macos, processor) in [
            ("osVersion=26.1&cputype=16777228&cpu64bit=1&cpusubtype=2&model=Mac15,3", Some("26"), Some("arm64")),
            ("cputype=7&osVersion=10.15.7", Some("10"), Some("intel")),
            ("osVersion=15&cputype=18", Some("15"), Some("other")),
            ("osVersion=&cputype=", Some("other"), Some("other")),
            ("osVersion=16.0&cputype=-1", Some("other"), Some("other")),
            ("osVersion=015.1&cputype=99999999999", Some("15"), Some("other")),
            ("osVersion=15&osVersion=%31%35", Some("other"), None),
            ("myosVersion=15&cputyp=7&osVersion", None, None),
            ("", None, None),
        ] {
            assert_eq!(of(query), [macos, processor].map(|name| name.map(str::to_owned)), "{query}");
        }
    }
}
