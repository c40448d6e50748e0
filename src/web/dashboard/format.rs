//! Formats numbers, shares and periods for people.

use crate::domain::statistics::Statistics;
use crate::domain::text::plural_form;
use crate::domain::time::{Day, Period};

/// Shown where there is no value.
pub(super) const NO_VALUE: &str = "–";

/// Formats a number with thousands separators.
pub(in crate::web) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Like [`quantity`](crate::domain::text::quantity), with thousands separators.
pub(in crate::web) fn grouped_quantity(number: u64, singular: &str, plural: &str) -> String {
    format!("{} {}", grouped(number), plural_form(number, singular, plural))
}

pub(super) fn downloads(number: u64) -> String {
    grouped_quantity(number, "download", "downloads")
}

pub(super) fn new_people(number: u64) -> String {
    grouped_quantity(number, "new person", "new people")
}

/// Returns `part` as a percentage of `whole`, or `None` if `whole` is 0.
fn share(part: u64, whole: u64) -> Option<u64> {
    let (part, whole) = (u128::from(part), u128::from(whole));
    (whole > 0).then(|| u64::try_from((part * 100 + whole / 2) / whole).unwrap_or(u64::MAX))
}

/// Formats a share. A part above 0 is never shown as 0 %, nor one below the whole as 100 %.
pub(super) fn percent(part: u64, whole: u64) -> String {
    match share(part, whole) {
        None => NO_VALUE.to_owned(),
        Some(0) if part > 0 => "<1 %".to_owned(),
        Some(100) if part < whole => ">99 %".to_owned(),
        Some(share) => format!("{share} %"),
    }
}

/// Returns the name of the period that starts on `day`.
pub(super) fn period_name(by: Period, day: Day) -> String {
    match by {
        Period::Day => day.short(),
        Period::Week => format!("week of {}", day.short()),
        Period::Month => day.month_and_year(),
    }
}

/// Returns the short name of a period, for the axis of a chart.
pub(super) fn axis_label(by: Period, day: Day) -> String {
    if by == Period::Month { day.month_and_year() } else { day.short() }
}

/// Returns the name of the period that contains today.
pub(super) const fn current_period(by: Period) -> &'static str {
    match by {
        Period::Day => "today",
        Period::Week => "this week",
        Period::Month => "this month",
    }
}

/// Returns the name of each period of the statistics. The last one is not over yet.
pub(super) fn period_names(statistics: &Statistics) -> Vec<String> {
    let mut names: Vec<_> = statistics.periods.iter().map(|(day, _)| period_name(statistics.by, *day)).collect();
    if let Some(last) = names.last_mut() {
        last.push_str(", so far");
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_thousands_separators_and_one_is_singular() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0, 1, 2000].map(downloads), ["0 downloads", "1 download", "2,000 downloads"]);
        assert_eq!([1, 2].map(new_people), ["1 new person", "2 new people"]);
    }

    #[test]
    fn a_small_share_is_never_shown_as_none_nor_a_large_one_as_all() {
        for (part, whole, formatted) in
            [(1, 3, "33 %"), (0, 9, "0 %"), (0, 0, "–"), (1, 1000, "<1 %"), (999, 1000, ">99 %"), (7, 7, "100 %")]
        {
            assert_eq!(percent(part, whole), formatted);
        }
        assert_eq!(percent(u64::MAX, u64::MAX), "100 %");
    }
}
