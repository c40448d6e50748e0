//! To whom a release is offered, and how fast: Sparkle's channels and phased rollouts.

use crate::domain::limits;
use crate::domain::parse::{Invalid, from_stored, text_types};

const STABLE: &str = "stable";

/// The stable channel is for everybody. Those who get another one also get the stable one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Channel(String);

text_types!(Channel);
from_stored!(Channel);

impl Channel {
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        if text.eq_ignore_ascii_case(STABLE) {
            return Ok(Self::stable());
        }
        let fits = text.len() <= limits::MAX_CHANNEL_CHARS
            && text.starts_with(|first: char| first.is_ascii_alphanumeric())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
        if fits { Ok(Self(text.to_owned())) } else { Err(Invalid::new("it is not a channel such as stable or beta")) }
    }

    pub fn stable() -> Self {
        Self(STABLE.to_owned())
    }

    /// What a prerelease is in unless a channel is named.
    pub fn beta() -> Self {
        Self("beta".to_owned())
    }

    pub fn is_stable(&self) -> bool {
        self.0 == STABLE
    }
}

/// In how many days a release reaches everybody. Zero is at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RolloutDays(u16);

/// Sparkle puts every app into one of as many groups; each waits one interval longer than the one before.
const ROLLOUT_GROUPS: u32 = 7;

impl RolloutDays {
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let days = text.parse().ok().filter(|days| *days <= limits::MAX_ROLLOUT_DAYS);
        let why = || Invalid::new(format!("it is not a number of days from 0 to {}", limits::MAX_ROLLOUT_DAYS));
        days.map(Self).ok_or_else(why)
    }

    /// Restores a number from the database. One that cannot be is none.
    pub fn from_stored(days: i64) -> Self {
        Self(u16::try_from(days).unwrap_or_default())
    }

    pub const fn days(self) -> u16 {
        self.0
    }

    /// Sparkle's `phasedRolloutInterval` in seconds, rounded down, so that the last group waits no longer than this.
    pub fn interval_seconds(self) -> Option<u32> {
        (self.0 > 0).then(|| u32::from(self.0) * 86_400 / ROLLOUT_GROUPS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_is_a_name_that_sparkle_and_a_path_can_have() {
        for name in ["beta", "Nightly", "2026.q1", "a-b_c"] {
            let channel = Channel::parse(name).unwrap();
            assert!(channel.as_str() == name && !channel.is_stable());
        }
        assert!(Channel::parse("stable").unwrap().is_stable() && Channel::parse("Stable").unwrap().is_stable());
        for name in ["", ".", "..", "-x", "a b", "a/b", "bêta", &"x".repeat(65)] {
            assert!(Channel::parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn the_groups_of_sparkle_share_the_days_of_a_rollout() {
        let interval = |days: &str| RolloutDays::parse(days).unwrap().interval_seconds();
        assert_eq!(["0", "1", "7", "10"].map(interval), [None, Some(12_342), Some(86_400), Some(123_428)]);
        for days in ["", "-1", "1.5", "366", "week"] {
            assert!(RolloutDays::parse(days).is_err(), "{days}");
        }
    }
}
