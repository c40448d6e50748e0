//! What may be published, put back or changed: a version and a file name once, nothing that would not be the newest, and nothing
//! that leaves people without updates.
//!
//! Sparkle offers the highest build of all that an app sees: the stable releases, and those of the channels that the app asks
//! for. Whoever has a higher build already is never offered a lower one. So once a release has a build number or a signature,
//! builds have to be in the order of the versions.

use super::channel::Channel;
use super::disk_image::ImageName;
use super::release::{Release, Releases, Signature};
use super::version::{BuildNumber, Version, compare_builds};

/// Why a release cannot be published, put back or changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishRejection {
    #[error("version {0} is already published; choose a higher one")]
    VersionUsed(Version),
    #[error("version {0} was withdrawn, and no other image can have it; put it back, or choose a higher one")]
    VersionWithdrawn(Version),
    #[error("the file name {0} is already used; choose a higher version")]
    NameUsed(ImageName),
    #[error("{0} is a pre-release version, which cannot be in the stable channel; choose another one, such as beta")]
    PrereleaseInStable(Version),
    #[error("{version} is not newer than {newest}; publish a higher version")]
    NotNewer { version: String, newest: String },
    #[error("{version} has no build number, but {other} has one; give that of the app")]
    BuildMissing { version: String, other: String },
    #[error("{version} has no EdDSA signature, but {other} has one; sign the image with Sparkle's sign_update")]
    SignatureMissing { version: String, other: String },
    /// Followed by what to do.
    #[error("{0}")]
    BuildOrder(String),
}

impl PublishRejection {
    /// Whether makers can insist.
    pub const fn can_be_forced(&self) -> bool {
        match self {
            Self::VersionUsed(_) | Self::VersionWithdrawn(_) | Self::NameUsed(_) | Self::PrereleaseInStable(_) => false,
            Self::NotNewer { .. } | Self::BuildMissing { .. } | Self::SignatureMissing { .. } | Self::BuildOrder(_) => {
                true
            }
        }
    }
}

/// What the rules ask of a release.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    pub version: &'a Version,
    pub channel: &'a Channel,
    pub build: Option<&'a BuildNumber>,
    pub signature: Option<&'a Signature>,
    /// Whether only the rules apply that cannot be forced.
    pub force: bool,
}

impl<'a> Candidate<'a> {
    pub const fn of(release: &'a Release, force: bool) -> Self {
        let Release { version, channel, build, signature, .. } = release;
        Self { version, channel, build: build.as_ref(), signature: signature.as_ref(), force }
    }
}

impl Releases {
    /// Checks whether a release of this version may be published.
    pub fn check_publishable(&self, candidate: Candidate, file: &ImageName) -> Result<(), PublishRejection> {
        if let Some(known) = self.find_version(candidate.version) {
            return Err(match known.withdrawn {
                Some(_) => PublishRejection::VersionWithdrawn(candidate.version.clone()),
                None => PublishRejection::VersionUsed(candidate.version.clone()),
            });
        }
        if self.find_file(file.as_str()).is_some() {
            return Err(PublishRejection::NameUsed(file.clone()));
        }
        self.check_becoming_available(candidate)
    }

    /// Checks whether a release may become the newest of its channel, when it is published or put back.
    pub fn check_becoming_available(&self, candidate: Candidate) -> Result<(), PublishRejection> {
        check_channel(candidate)?;
        if candidate.force {
            return Ok(());
        }
        let version = || candidate.version.to_string();
        let highest = self.available().find(|other| other.is_in(candidate.channel));
        if let Some(highest) = highest.filter(|highest| highest.version > *candidate.version) {
            return Err(PublishRejection::NotNewer { version: version(), newest: highest.version.to_string() });
        }
        let find_other = |has_it: fn(&Release) -> bool| {
            let other = self.iter().find(|other| other.version != *candidate.version && has_it(other));
            other.map(|other| other.version.to_string())
        };
        if candidate.build.is_none()
            && let Some(other) = find_other(|other| other.build.is_some())
        {
            return Err(PublishRejection::BuildMissing { version: version(), other });
        }
        if candidate.signature.is_none()
            && let Some(other) = find_other(|other| other.signature.is_some())
        {
            return Err(PublishRejection::SignatureMissing { version: version(), other });
        }
        // Some people still have a release that was withdrawn, and are only offered a higher build.
        self.check_builds(candidate, |other| other.is_in(candidate.channel))
    }

    /// Checks whether a release that is available may have this channel and this build number.
    pub fn check_changed(&self, candidate: Candidate) -> Result<(), PublishRejection> {
        check_channel(candidate)?;
        if candidate.force { Ok(()) } else { self.check_builds(candidate, |_| false) }
    }

    /// Compares the build with those of all other releases, withdrawn or not. It has to be higher than those of lower versions,
    /// in whatever channel, and than those of `is_replaced`; and lower than those of higher versions that the same apps see.
    fn check_builds(
        &self,
        candidate: Candidate,
        is_replaced: impl Fn(&Release) -> bool,
    ) -> Result<(), PublishRejection> {
        let Candidate { version, build, signature, channel, .. } = candidate;
        let is_used_by_sparkle = build.is_some() || signature.is_some();
        if !is_used_by_sparkle && self.iter().all(|other| other.build.is_none() && other.signature.is_none()) {
            return Ok(());
        }
        let build = build.map_or(version.as_str(), BuildNumber::as_str);
        for other in self.iter().filter(|other| other.version != *version) {
            let order = compare_builds(build, other.build_or_version());
            let must_be_higher = other.version < *version || is_replaced(other);
            let may_be_higher = must_be_higher || other.withdrawn.is_some() || !other.is_in(channel);
            if (must_be_higher && order.is_lt()) || (!may_be_higher && order.is_gt()) || order.is_eq() {
                return Err(PublishRejection::BuildOrder(format!(
                    "Sparkle takes build {build} of {version} for {} build {} of {}; choose a {} one",
                    if order.is_lt() {
                        "older than"
                    } else if order.is_gt() {
                        "newer than"
                    } else {
                        "the same as"
                    },
                    other.build_or_version(),
                    other.version,
                    if must_be_higher { "higher" } else { "lower" },
                )));
            }
        }
        Ok(())
    }
}

fn check_channel(candidate: Candidate) -> Result<(), PublishRejection> {
    if candidate.version.is_prerelease() && candidate.channel.is_stable() {
        return Err(PublishRejection::PrereleaseInStable(candidate.version.clone()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::releases::{Notes, RolloutDays, Withdrawal};
    use crate::domain::sha256::Sha256;
    use crate::domain::time::Timestamp;

    fn file(version: &str) -> ImageName {
        ImageName::new("Troupe", &Version::parse(version).unwrap()).unwrap()
    }

    /// `1.4.0`, `1.4.0=77` with a build number, `1.4.0=77!` with a signature, too. In front, a channel, or a minus sign if it
    /// was withdrawn: `beta 2.0-beta.1`, `-1.5.0`.
    fn release(text: &str) -> Release {
        let (channel, text) = text.split_once(' ').unwrap_or(("stable", text));
        let (is_withdrawn, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
        let (is_signed, text) = text.strip_suffix('!').map_or((false, text), |text| (true, text));
        let (version, build) = text.split_once('=').map_or((text, None), |(version, build)| (version, Some(build)));
        Release {
            version: Version::parse(version).unwrap(),
            file: file(version),
            external_url: None,
            length: 1,
            sha256: Sha256::of(b"image"),
            notes: Notes::default(),
            build: build.map(|build| BuildNumber::parse(build).unwrap()),
            signature: is_signed.then(|| Signature::from_stored("signature")),
            minimum_macos: None,
            channel: Channel::parse(channel).unwrap(),
            critical: false,
            phased: RolloutDays::default(),
            published: Timestamp::from_unix_millis(0),
            withdrawn: is_withdrawn.then_some(Withdrawal { at: Timestamp::from_unix_millis(1), reason: None }),
        }
    }

    fn publish(known: &[&str], new: &str, force: bool) -> Result<(), String> {
        let (known, new) = (Releases::new(known.iter().map(|text| release(text)).collect()), release(new));
        known.check_publishable(Candidate::of(&new, force), &new.file).map_err(|why| why.to_string())
    }

    fn check(known: &[&str], new: &str, why: &str) {
        let found = publish(known, new, false);
        match why {
            "" => assert_eq!(found, Ok(()), "{new} after {known:?}"),
            why => assert!(found.as_ref().is_err_and(|found| found.contains(why)), "{new} after {known:?}: {found:?}"),
        }
    }

    #[test]
    fn a_version_is_used_once_and_must_be_newer() {
        let known = ["1.4.0", "-1.5.0", "beta 2.0.0-beta.2"];
        check(&known, "1.4.1", "");
        for (new, why) in
            [("1.4.0", "1.4.0 is already published"), ("1.4", "1.4 is already published"), ("1.5", "1.5 was withdrawn")]
        {
            assert!(publish(&known, new, true).unwrap_err().contains(why));
        }
        check(&known, "1.3.9", "1.3.9 is not newer than 1.4.0");
        assert_eq!(publish(&known, "1.3.9", true), Ok(()));
        check(&known, "beta 2.0.0-beta.1", "2.0.0-beta.1 is not newer than 2.0.0-beta.2");
        check(&known, "beta 1.3.9", "not newer");
        check(&known, "alpha 2.0.0-alpha.1", "");
        check(&known, "alpha 1.3.9", "1.3.9 is not newer than 1.4.0");
        assert!(publish(&known, "2.0.0-beta.3", true).unwrap_err().contains("cannot be in the stable channel"));
        let (known, new) = (Releases::new(vec![release("1.4.0")]), release("1.6.0"));
        let other_name = known.check_publishable(Candidate::of(&new, true), &file("1.4.0"));
        assert_eq!(other_name, Err(PublishRejection::NameUsed(file("1.4.0"))));
    }

    #[test]
    fn once_there_are_build_numbers_or_signatures_every_release_has_them_and_builds_rise() {
        check(&["1.4.0=77", "1.3.0"], "1.5.0", "1.5.0 has no build number, but 1.4.0 has one");
        check(&["1.4.0=77!"], "1.5.0=78", "1.5.0 has no EdDSA signature, but 1.4.0 has one");
        check(&["1.4.0!"], "1.5.0", "no EdDSA signature");
        check(&["1.4.0!"], "1.5.0!", "");
        check(&["1.4.0=77!"], "1.5.0=78!", "");
        check(
            &["1.4.0=77"],
            "1.5.0=77",
            "Sparkle takes build 77 of 1.5.0 for the same as build 77 of 1.4.0; choose a higher one",
        );
        check(&["1.4.0=77"], "1.5.0=9", "older than");
        check(&["1.4.0=1.9"], "1.5.0=1.10", "");
        // What has no build number has its version instead.
        check(&["1.4.0"], "1.5.0=1", "Sparkle takes build 1 of 1.5.0 for older than build 1.4.0 of 1.4.0");
        check(&["1.4.0"], "1.5.0=77", "");
        check(&["beta 2.0.0-beta.1!"], "beta 2.0.0-beta.2!", "the same as build 2.0.0-beta.1");
        for new in ["1.5.0", "1.5.0=77!", "1.5.0=9", "1.3.0=99!"] {
            assert_eq!(publish(&["1.4.0=77!"], new, true), Ok(()), "{new} is forced");
        }
    }

    #[test]
    fn builds_count_of_all_releases_that_an_app_may_have_or_see() {
        // Who has the release that was withdrawn gets the next one.
        check(&["1.4.0=40", "-1.5.0=50"], "1.6.0=45", "build 50 of 1.5.0");
        check(&["1.4.0=40", "-1.5.0=50"], "1.4.1=45", "build 50 of 1.5.0");
        check(&["1.4.0=40", "-1.5.0=50"], "1.4.1=51", "");
        // Who has the beta gets the stable release that follows it, and the other way round.
        check(&["1.4.0=40", "beta 2.0.0-beta.1=60"], "2.0.0=55", "build 60 of 2.0.0-beta.1");
        check(&["1.4.0=40", "beta -2.0.0-beta.1=60"], "2.0.0=55", "build 60 of 2.0.0-beta.1");
        check(&["1.4.0=40"], "beta 2.0.0-beta.1=39", "build 40 of 1.4.0");
        check(&["1.4.0=40", "alpha 2.0.0-alpha.1=60"], "beta 2.0.0-beta.1=50", "build 60 of 2.0.0-alpha.1");
        // A correction of the stable release beside a beta that is ahead: those who have the beta keep it, or not.
        check(&["1.4.0=40", "beta 2.0.0-beta.1=60"], "1.4.1=41", "");
        check(&["1.4.0=40", "beta 2.0.0-beta.1=60"], "1.4.1=61", "");
        check(&["1.4.0=40", "beta 2.0.0-beta.1=60"], "1.4.1=60", "the same as");
    }

    #[test]
    fn a_change_keeps_builds_in_the_order_of_versions() {
        let changed = |known: &[&str], new: &str| {
            let known = Releases::new(known.iter().map(|text| release(text)).collect());
            known.check_changed(Candidate::of(&release(new), false)).map_err(|why| why.to_string())
        };
        let known = ["1.3.0=30!", "1.4.0=40!", "1.5.0=50!", "-1.6.0=60!", "beta 2.0.0=70!"];
        for new in ["1.4.0=41!", "1.4.0=49", "1.5.0=65!", "1.5.0=99!", "2.0.0=70!", "beta 1.5.0=50!"] {
            assert_eq!(changed(&known, new), Ok(()), "{new}");
        }
        for (new, why) in [
            ("1.4.0=50!", "the same as build 50 of 1.5.0; choose a lower one"),
            ("1.4.0=51!", "newer than build 50 of 1.5.0; choose a lower one"),
            ("1.4.0=30!", "the same as build 30 of 1.3.0; choose a higher one"),
            ("1.4.0=29!", "older than build 30 of 1.3.0; choose a higher one"),
            ("2.0.0=45!", "older than build 60 of 1.6.0"),
        ] {
            assert!(
                changed(&known, new).as_ref().is_err_and(|found| found.contains(why)),
                "{new}: {:?}",
                changed(&known, new)
            );
        }
        assert!(changed(&["beta 2.0.0-beta.1"], "2.0.0-beta.1").unwrap_err().contains("stable channel"));
    }
}
