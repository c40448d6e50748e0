//! How long contact messages are kept.

use std::fmt;

use jiff::Span;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::domain::parse::Invalid;
use crate::domain::text::quantity;
use crate::domain::time::Timestamp;

/// A number of days, weeks, months or years. Months and years are those of the calendar, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    count: u32,
    /// One of [`UNITS`].
    unit: (&'static str, &'static str),
}

const UNITS: [(&str, &str); 4] = [("day", "days"), ("week", "weeks"), ("month", "months"), ("year", "years")];

const SYNTAX: &str = "it is neither forever nor a number of days, weeks, months or years such as 24 months";

/// The largest count: more than a century of days.
const MAX_COUNT: u32 = 40_000;

impl Retention {
    /// Parses `24 months`, or `forever` as `None`.
    pub fn parse(text: &str) -> Result<Option<Self>, Invalid> {
        if text.trim() == "forever" {
            return Ok(None);
        }
        let (count, name) = text.trim().split_once(' ').ok_or_else(|| Invalid::new(SYNTAX))?;
        let unit = UNITS.into_iter().find(|(one, many)| [*one, *many].contains(&name.trim()));
        let is_number = count.bytes().all(|byte| byte.is_ascii_digit());
        let count = count.parse().ok().filter(|count| is_number && (1..=MAX_COUNT).contains(count));
        let (count, unit) = count.zip(unit).ok_or_else(|| Invalid::new(SYNTAX))?;
        Ok(Some(Self { count, unit }))
    }

    /// What is older than this is not kept any more.
    pub fn oldest_kept(self, now: Timestamp) -> Timestamp {
        let now = jiff::Timestamp::from_millisecond(now.unix_millis()).unwrap_or(jiff::Timestamp::MIN);
        // More years than a span supports lead out of range anyway.
        let span = self.to_string().parse::<Span>().ok();
        let oldest = span.and_then(|span| TimeZone::UTC.to_datetime(now).checked_sub(span).ok());
        let oldest = TimeZone::UTC.to_timestamp(oldest.unwrap_or(DateTime::MIN)).unwrap_or(jiff::Timestamp::MIN);
        Timestamp::from_unix_millis(oldest.as_millisecond())
    }
}

/// As in a sentence: `24 months`, `1 year`.
impl fmt::Display for Retention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quantity(self.count, self.unit.0, self.unit.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oldest(text: &str, now: &str) -> String {
        let retention = Retention::parse(text).unwrap().unwrap();
        retention.oldest_kept(Timestamp::parse(now).unwrap()).rfc3339()
    }

    #[test]
    fn months_are_those_of_the_calendar() {
        assert_eq!(oldest("24 months", "2026-11-15T12:00:00Z"), "2024-11-15T12:00:00Z");
        assert_eq!(oldest("1 month", "2026-03-31T12:00:00Z"), "2026-02-28T12:00:00Z");
        assert_eq!(oldest("1 year", "2024-02-29T00:00:00Z"), "2023-02-28T00:00:00Z");
        assert_eq!(oldest("90 days", "2026-11-15"), "2026-08-17T00:00:00Z");
        assert_eq!(oldest("2 weeks", "2026-11-15"), "2026-11-01T00:00:00Z");
        assert!(oldest("40000 years", "2026-11-15").starts_with('-'), "before everything");
    }

    #[test]
    fn it_reads_as_it_is_written() {
        for text in ["24 months", "1 year", "90 days", "2 weeks", "1 day"] {
            assert_eq!(Retention::parse(text).unwrap().unwrap().to_string(), text);
        }
        assert_eq!(Retention::parse(" forever "), Ok(None));
        for wrong in
            ["", "24", "months", "0 days", "-1 days", "+1 days", "1.5 years", "24months", "40001 days", "2 hours"]
        {
            assert!(Retention::parse(wrong).is_err(), "{wrong}");
        }
    }
}
