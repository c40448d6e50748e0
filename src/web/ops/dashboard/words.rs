//! Numbers, shares and periods as people read them.

use crate::domain::calendar::{Day, Period};
use crate::domain::plural::pluralize;
use crate::domain::statistics::Statistics;

/// For what cannot be told.
pub(super) const NOTHING: &str = "–";

/// A number with its thousands apart.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// So many of something: `1 download`, `2 downloads`.
pub(super) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), pluralize(number, one, many))
}

pub(super) fn downloads(number: u64) -> String {
    counted(number, "download", "downloads")
}

pub(super) fn new_people(number: u64) -> String {
    counted(number, "new person", "new people")
}

/// A part of a whole in percent, if there is a whole.
pub(super) fn share(part: u64, whole: u64) -> Option<u64> {
    let (part, whole) = (u128::from(part), u128::from(whole));
    (whole > 0).then(|| u64::try_from((part * 100 + whole / 2) / whole).unwrap_or(u64::MAX))
}

/// The same in words. What is there at all is never called nothing, and what is missing is not lost.
pub(super) fn percent(part: u64, whole: u64) -> String {
    match share(part, whole) {
        None => NOTHING.to_owned(),
        Some(0) if part > 0 => "<1 %".to_owned(),
        Some(100) if part < whole => ">99 %".to_owned(),
        Some(share) => format!("{share} %"),
    }
}

/// What a period is called.
pub(super) fn period(by: Period, day: Day) -> String {
    match by {
        Period::Day => day.short(),
        Period::Week => format!("week of {}", day.short()),
        Period::Month => day.month_name(),
    }
}

/// The same where there is little room.
pub(super) fn under_chart(by: Period, day: Day) -> String {
    if by == Period::Month { day.month_name() } else { day.short() }
}

/// What the period that still runs is called.
pub(super) const fn running(by: Period) -> &'static str {
    match by {
        Period::Day => "today",
        Period::Week => "this week",
        Period::Month => "this month",
    }
}

/// What each period of the statistics is called; the last of them still runs.
pub(super) fn periods(statistics: &Statistics) -> Vec<String> {
    let mut names: Vec<_> = statistics.periods.iter().map(|(day, _)| period(statistics.by, *day)).collect();
    if let Some(last) = names.last_mut() {
        last.push_str(", so far");
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_in_groups_and_one_is_one() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0, 1, 2000].map(downloads), ["0 downloads", "1 download", "2,000 downloads"]);
        assert_eq!([1, 2].map(new_people), ["1 new person", "2 new people"]);
    }

    #[test]
    fn a_share_never_calls_something_nothing_nor_a_part_the_whole() {
        for (part, whole, told) in
            [(1, 3, "33 %"), (0, 9, "0 %"), (0, 0, "–"), (1, 1000, "<1 %"), (999, 1000, ">99 %"), (7, 7, "100 %")]
        {
            assert_eq!(percent(part, whole), told);
        }
        assert_eq!(percent(u64::MAX, u64::MAX), "100 %");
    }
}
