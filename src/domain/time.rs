//! Timestamps, and days, weeks and months, in UTC.

use std::time::Duration;

use jiff::civil::Date;
use jiff::{Span, ToSpan};
use serde::{Serialize, Serializer};

use super::parse::word_enum;

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

    /// The minute in UTC, for people: `15 Nov 2026, 12:00 UTC`.
    pub fn minute(self) -> String {
        format!("{}, {} UTC", Day::of(self).long(), self.rfc3339().get(11..16).unwrap_or_default())
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

const MILLIS_PER_DAY: i64 = 24 * 60 * 60 * 1000;

/// A day, stored as the number of days since 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(i64);

impl Day {
    pub const fn of(timestamp: Timestamp) -> Self {
        Self(timestamp.unix_millis().div_euclid(MILLIS_PER_DAY))
    }

    pub const fn from_number(days: i64) -> Self {
        Self(days)
    }

    pub const fn number(self) -> i64 {
        self.0
    }

    /// Parses `2026-11-15`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let date = Date::strptime("%Y-%m-%d", text).map_err(|_| "write a day as 2026-11-15".to_owned())?;
        Ok(Self::from_civil(date))
    }

    /// The day as `2026-11-15`.
    pub fn date(self) -> String {
        self.civil().to_string()
    }

    /// The day as `15 Nov`.
    pub fn short(self) -> String {
        self.civil().strftime("%-d %b").to_string()
    }

    /// The day as `15 Nov 2026`.
    pub fn long(self) -> String {
        self.civil().strftime("%-d %b %Y").to_string()
    }

    /// The month of the day, as `Nov 2026`.
    pub fn month_and_year(self) -> String {
        self.civil().strftime("%b %Y").to_string()
    }

    pub const fn before(self, days: i64) -> Self {
        Self(self.0.saturating_sub(days))
    }

    fn from_civil(date: Date) -> Self {
        Self(i64::from(EPOCH.until(date).map_or(0, |span: Span| span.get_days())))
    }

    fn civil(self) -> Date {
        EPOCH.saturating_add(self.0.clamp(-MAX_DAYS, MAX_DAYS).days())
    }
}

const EPOCH: Date = jiff::civil::date(1970, 1, 1);
/// Keeps the arithmetic within the range of `Date`.
const MAX_DAYS: i64 = 4_000_000;

word_enum! {
    /// The granularity of a chart or table: the length of each of its periods.
    #[derive(Default)]
    pub enum Period {
        #[default]
        Day = "day",
        /// Starts on Monday.
        Week = "week",
        Month = "month",
    }
}

impl Period {
    /// The first day of the period that contains `day`.
    pub fn start(self, day: Day) -> Day {
        match self {
            Self::Day => day,
            Self::Week => day.before(i64::from(day.civil().weekday().to_monday_zero_offset())),
            Self::Month => Day::from_civil(day.civil().first_of_month()),
        }
    }

    /// The first day of the period after the one that contains `day`.
    pub fn next(self, day: Day) -> Day {
        match self {
            Self::Day => Day(day.0 + 1),
            Self::Week => Day(self.start(day).0 + 7),
            Self::Month => Day(Day::from_civil(day.civil().last_of_month()).0 + 1),
        }
    }

    /// The first day of the default range that ends today: 30 days, 13 weeks or 12 months.
    pub fn default_start(self, today: Day) -> Day {
        match self {
            Self::Day => today.before(29),
            Self::Week => self.start(today).before(12 * 7),
            Self::Month => Day::from_civil(today.civil().first_of_month().saturating_sub(11.months())),
        }
    }

    /// The first day of a chart that ends today. It starts with the first day that has data, but shows at
    /// least seven periods and at most the default range.
    pub fn chart_start(self, first: Option<Day>, today: Day) -> Day {
        const MIN_PERIODS: usize = 7;
        let latest = (1..MIN_PERIODS).fold(self.start(today), |day, _| self.start(day.before(1)));
        first.map_or(latest, |first| self.start(first)).min(latest).max(self.default_start(today))
    }

    /// The first days of all periods that overlap the range from `from` to `to`.
    pub fn starts(self, from: Day, to: Day) -> Vec<Day> {
        let first = Some(self.start(from));
        std::iter::successors(first, |day| Some(self.next(*day))).take_while(|day| *day <= to).collect()
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

    fn day(text: &str) -> Day {
        Day::parse(text).unwrap()
    }

    fn dates(days: Vec<Day>) -> Vec<String> {
        days.into_iter().map(Day::date).collect()
    }

    #[test]
    fn days_begin_at_midnight_utc() {
        let midnight = 20_772 * MILLIS_PER_DAY;
        assert_eq!(Day::of(Timestamp::from_unix_millis(midnight)).date(), "2026-11-15");
        assert_eq!(Day::of(Timestamp::from_unix_millis(midnight - 1)).date(), "2026-11-14");
        assert_eq!(day("1970-01-01").number(), 0);
        assert_eq!(day("2026-11-15").number(), 20_772);
        assert_eq!(day("2026-11-05").short(), "5 Nov");
        assert_eq!(day("2026-11-05").long(), "5 Nov 2026");
        assert_eq!(day("2026-11-05").month_and_year(), "Nov 2026");
        for wrong in ["", "15.11.2026", "2026-13-01", "2026-11-15T00:00:00Z"] {
            assert!(Day::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn weeks_begin_on_monday_and_months_on_the_first() {
        let (from, to) = (day("2026-10-31"), day("2026-11-15"));
        assert_eq!(dates(Period::Week.starts(from, to)), ["2026-10-26", "2026-11-02", "2026-11-09"]);
        assert_eq!(dates(Period::Month.starts(from, to)), ["2026-10-01", "2026-11-01"]);
        assert_eq!(Period::Day.starts(from, to).len(), 16);
        assert_eq!(Period::Month.next(day("2026-12-31")).date(), "2027-01-01");
    }

    #[test]
    fn the_default_range_is_30_days_13_weeks_or_12_months() {
        for today in ["2026-11-15", "2026-11-01", "2028-02-29", "2026-12-31", "2027-01-31"].map(day) {
            for (period, periods) in [(Period::Day, 30), (Period::Week, 13), (Period::Month, 12)] {
                assert_eq!(period.starts(period.default_start(today), today).len(), periods, "{period:?} {today:?}");
            }
        }
    }

    #[test]
    fn a_chart_starts_with_the_first_data_but_shows_at_least_seven_periods() {
        let today = day("2026-11-15");
        for (period, first, start) in [
            (Period::Day, None, "2026-11-09"),
            (Period::Day, Some("2026-11-15"), "2026-11-09"),
            (Period::Day, Some("2026-11-01"), "2026-11-01"),
            (Period::Day, Some("2020-01-01"), "2026-10-17"),
            (Period::Week, Some("2026-11-15"), "2026-09-28"),
            (Period::Week, Some("2026-09-02"), "2026-08-31"),
            (Period::Month, Some("2026-11-15"), "2026-05-01"),
            (Period::Month, Some("2020-01-01"), "2025-12-01"),
        ] {
            assert_eq!(period.chart_start(first.map(day), today).date(), start, "{period:?} {first:?}");
        }
    }
}
