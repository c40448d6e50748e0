//! Days, and the weeks and months they lie in. All of it in UTC.

use jiff::civil::Date;
use jiff::{Span, ToSpan};

use super::time::Timestamp;

const MILLIS_A_DAY: i64 = 24 * 60 * 60 * 1000;

/// A day, as the number of days since the start of 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(i64);

impl Day {
    #[must_use]
    pub const fn of(moment: Timestamp) -> Self {
        Self(moment.unix_millis().div_euclid(MILLIS_A_DAY))
    }

    #[must_use]
    pub const fn from_number(days: i64) -> Self {
        Self(days)
    }

    #[must_use]
    pub const fn number(self) -> i64 {
        self.0
    }

    /// Reads `2026-11-15`.
    ///
    /// # Errors
    /// With what to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let date = Date::strptime("%Y-%m-%d", text).map_err(|_| "write a day as 2026-11-15".to_owned())?;
        Ok(Self::at(date))
    }

    /// The day as `2026-11-15`.
    #[must_use]
    pub fn date(self) -> String {
        self.civil().to_string()
    }

    /// The day as `15 Nov`.
    #[must_use]
    pub fn short(self) -> String {
        self.civil().strftime("%-d %b").to_string()
    }

    /// The day as `15 Nov 2026`.
    #[must_use]
    pub fn long(self) -> String {
        self.civil().strftime("%-d %b %Y").to_string()
    }

    /// The month that the day lies in, as `Nov 2026`.
    #[must_use]
    pub fn month_name(self) -> String {
        self.civil().strftime("%b %Y").to_string()
    }

    #[must_use]
    pub const fn before(self, days: i64) -> Self {
        Self(self.0.saturating_sub(days))
    }

    fn at(date: Date) -> Self {
        Self(i64::from(EPOCH.until(date).map_or(0, |span: Span| span.get_days())))
    }

    fn civil(self) -> Date {
        EPOCH.saturating_add(self.0.clamp(-MOST_DAYS, MOST_DAYS).days())
    }
}

const EPOCH: Date = jiff::civil::date(1970, 1, 1);
/// More days than any calendar has.
const MOST_DAYS: i64 = 4_000_000;

/// What days are put together by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Period {
    #[default]
    Day,
    /// From Monday.
    Week,
    Month,
}

impl Period {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// The first day of the period that a day lies in.
    #[must_use]
    pub fn start(self, day: Day) -> Day {
        match self {
            Self::Day => day,
            Self::Week => day.before(i64::from(day.civil().weekday().to_monday_zero_offset())),
            Self::Month => Day::at(day.civil().first_of_month()),
        }
    }

    /// The first day of the period after that of a day.
    #[must_use]
    pub fn next(self, day: Day) -> Day {
        match self {
            Self::Day => Day(day.0 + 1),
            Self::Week => Day(self.start(day).0 + 7),
            Self::Month => Day(Day::at(day.civil().last_of_month()).0 + 1),
        }
    }

    /// Where a look back that ends on this day begins, if nobody says otherwise: a month of days, a
    /// quarter of weeks, a year of months.
    #[must_use]
    pub fn look_back(self, today: Day) -> Day {
        match self {
            Self::Day => today.before(29),
            Self::Week => self.start(today).before(12 * 7),
            Self::Month => Day::at(today.civil().first_of_month().saturating_sub(11.months())),
        }
    }

    /// Where a drawing begins that ends on this day: with the first day that anything is known of, a
    /// look back at the most and a handful of periods at the least.
    #[must_use]
    pub fn drawn_from(self, first: Option<Day>, today: Day) -> Day {
        const HANDFUL: usize = 7;
        let least = (1..HANDFUL).fold(self.start(today), |day, _| self.start(day.before(1)));
        first.map_or(least, |first| self.start(first)).min(least).max(self.look_back(today))
    }

    /// The first days of all periods from that of one day to that of another.
    #[must_use]
    pub fn starts(self, from: Day, to: Day) -> Vec<Day> {
        let first = Some(self.start(from));
        std::iter::successors(first, |day| Some(self.next(*day))).take_while(|day| *day <= to).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Day {
        Day::parse(text).unwrap()
    }

    fn dates(days: Vec<Day>) -> Vec<String> {
        days.into_iter().map(Day::date).collect()
    }

    #[test]
    fn a_day_begins_and_ends_at_midnight_utc() {
        let midnight = 20_772 * MILLIS_A_DAY;
        assert_eq!(Day::of(Timestamp::from_unix_millis(midnight)).date(), "2026-11-15");
        assert_eq!(Day::of(Timestamp::from_unix_millis(midnight - 1)).date(), "2026-11-14");
        assert_eq!(day("1970-01-01").number(), 0);
        assert_eq!(day("2026-11-15").number(), 20_772);
        assert_eq!(day("2026-11-05").short(), "5 Nov");
        assert_eq!(day("2026-11-05").long(), "5 Nov 2026");
        assert_eq!(day("2026-11-05").month_name(), "Nov 2026");
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
    fn a_look_back_is_a_month_of_days_a_quarter_of_weeks_or_a_year_of_months() {
        for today in ["2026-11-15", "2026-11-01", "2028-02-29", "2026-12-31", "2027-01-31"].map(day) {
            for (period, periods) in [(Period::Day, 30), (Period::Week, 13), (Period::Month, 12)] {
                assert_eq!(period.starts(period.look_back(today), today).len(), periods, "{period:?} {today:?}");
            }
        }
    }

    #[test]
    fn a_drawing_begins_with_what_is_known_but_is_never_of_a_bar_or_two() {
        let today = day("2026-11-15");
        for (period, first, drawn) in [
            (Period::Day, None, "2026-11-09"),
            (Period::Day, Some("2026-11-15"), "2026-11-09"),
            (Period::Day, Some("2026-11-01"), "2026-11-01"),
            (Period::Day, Some("2020-01-01"), "2026-10-17"),
            (Period::Week, Some("2026-11-15"), "2026-09-28"),
            (Period::Week, Some("2026-09-02"), "2026-08-31"),
            (Period::Month, Some("2026-11-15"), "2026-05-01"),
            (Period::Month, Some("2020-01-01"), "2025-12-01"),
        ] {
            assert_eq!(period.drawn_from(first.map(day), today).date(), drawn, "{period:?} {first:?}");
        }
    }
}
