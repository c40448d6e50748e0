//! Timestamps.

use std::time::Duration;

use serde::{Serialize, Serializer};

/// Milliseconds since the start of 1970, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(i64);

/// In JSON, as in RFC 3339.
impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.rfc3339())
    }
}

impl Timestamp {
    pub const fn from_unix_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Parses an RFC 3339 timestamp, or a day such as `2026-11-15` as its start in UTC.
    pub fn parse(text: &str) -> Option<Self> {
        let timestamp = text.parse::<jiff::Timestamp>().or_else(|_| format!("{text}T00:00:00Z").parse()).ok()?;
        Some(Self(timestamp.as_millisecond()))
    }

    pub const fn unix_millis(self) -> i64 {
        self.0
    }

    pub const fn unix_seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    pub fn after(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(millis))
    }

    pub fn before(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(millis))
    }

    /// The duration until `later`, or zero if that is in the past.
    pub fn until(self, later: Self) -> Duration {
        Duration::from_millis(u64::try_from(later.0.saturating_sub(self.0)).unwrap_or_default())
    }

    /// The calendar month in UTC, as `2026-11`.
    pub fn month(self) -> String {
        self.date().rsplit_once('-').map(|(month, _)| month.to_owned()).unwrap_or_default()
    }

    /// The day in UTC, as `2026-11-15`.
    pub fn date(self) -> String {
        self.rfc3339().split('T').next().unwrap_or_default().to_owned()
    }

    /// The timestamp as in RFC 2822: `Sun, 15 Nov 2026 12:00:00 +0000`.
    pub fn rfc2822(self) -> String {
        let timestamp = jiff::Timestamp::from_second(self.unix_seconds()).unwrap_or(jiff::Timestamp::MAX);
        jiff::fmt::rfc2822::to_string(&timestamp.to_zoned(jiff::tz::TimeZone::UTC)).unwrap_or_default()
    }

    /// The timestamp as in RFC 3339, with a precision of one second.
    pub fn rfc3339(self) -> String {
        jiff::Timestamp::from_second(self.unix_seconds()).unwrap_or(jiff::Timestamp::MAX).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_and_days_are_parsed_and_nothing_else_is() {
        let noon = Timestamp::from_unix_millis(1_794_744_000_000);
        assert_eq!(Timestamp::parse(&noon.rfc3339()), Some(noon));
        assert_eq!(Timestamp::parse("2026-11-15T13:00:00+01:00"), Some(noon));
        assert_eq!(Timestamp::parse("2026-11-15"), Some(noon.before(Duration::from_hours(12))));
        for wrong in ["", "soon", "15.11.2026", "2026-11-31", "2026-11-15T13:00:00"] {
            assert_eq!(Timestamp::parse(wrong), None, "{wrong}");
        }
    }
}
