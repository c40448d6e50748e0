//! The `Range` request header (RFC 9110, section 14.2), for a file of a known length.
//!
//! Only a single range is honored. A request for several is answered with the whole file, which the
//! RFC allows.

use std::ops::RangeInclusive;

use http::header::{IF_RANGE, RANGE};
use http::{HeaderMap, Method};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestedRange {
    Whole,
    Part(RangeInclusive<u64>),
    /// The range starts beyond the end of the file.
    Unsatisfiable,
}

impl RequestedRange {
    /// The range that a request asks for, of a file of `total` bytes. It asks for the whole file if it is no `GET`, repeats
    /// `Range`, or has an `If-Range` that names none of the `validators` of the file.
    pub(crate) fn of(method: &Method, headers: &HeaderMap, validators: &[&str], total: u64) -> Self {
        let mut ranges = headers.get_all(RANGE).into_iter();
        let (&Method::GET, Some(range), None) = (method, ranges.next(), ranges.next()) else { return Self::Whole };
        let is_current = |value| validators.iter().any(|validator| value == *validator);
        match range.to_str() {
            Ok(range) if headers.get(IF_RANGE).is_none_or(is_current) => Self::parse(range, total),
            _ => Self::Whole,
        }
    }

    /// Parses the value of a `Range` header for a file of `total` bytes. A malformed header, another
    /// unit and several ranges all request the whole file.
    fn parse(header: &str, total: u64) -> Self {
        Self::parse_single(header, total).unwrap_or(Self::Whole)
    }

    fn parse_single(header: &str, total: u64) -> Option<Self> {
        let (unit, set) = header.split_once('=')?;
        let mut ranges = set.split(',').map(|range| range.trim_matches([' ', '\t'])).filter(|range| !range.is_empty());
        let (Some(range), None) = (ranges.next(), ranges.next()) else { return None };
        let (first, last) = range.split_once('-').filter(|_| unit.eq_ignore_ascii_case("bytes"))?;
        if first.is_empty() {
            return match parse_position(last)? {
                0 => Some(Self::Unsatisfiable),
                _ if total == 0 => None,
                suffix => Some(Self::Part(total.saturating_sub(suffix)..=total - 1)),
            };
        }
        let first = parse_position(first)?;
        let last = if last.is_empty() { u64::MAX } else { parse_position(last)? };
        match first {
            _ if last < first => None,
            _ if first < total => Some(Self::Part(first..=last.min(total - 1))),
            _ => Some(Self::Unsatisfiable),
        }
    }
}

/// Parses digits. A number that overflows is clamped: no file is that long.
fn parse_position(digits: &str) -> Option<u64> {
    let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    all_digits.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_range_is_given_by_its_ends_its_start_or_its_length_from_the_end() {
        for (header, first, last) in [
            ("bytes=0-0", 0, 0),
            ("bytes=0-499", 0, 499),
            ("bytes=500-999", 500, 999),
            ("bytes=500-5000", 500, 999),
            ("bytes=999-", 999, 999),
            ("bytes=-1", 999, 999),
            ("bytes=-1000", 0, 999),
            ("bytes=-1001", 0, 999),
            ("Bytes=007-08", 7, 8),
            ("bytes= 1-2\t", 1, 2),
            ("bytes=, ,1-2,\t,", 1, 2),
            ("bytes=1-99999999999999999999999999", 1, 999),
            ("bytes=-99999999999999999999999999", 0, 999),
        ] {
            assert_eq!(RequestedRange::parse(header, 1000), RequestedRange::Part(first..=last), "{header}");
        }
    }

    #[test]
    fn a_malformed_header_and_several_ranges_request_the_whole_file() {
        for header in [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes 0-1",
            "bytes =0-1",
            " bytes=0-1",
            "items=0-1",
            "bytes=-",
            "bytes=--1",
            "bytes=5",
            "bytes=5-4",
            "bytes=2000-1999",
            "bytes=+1-2",
            "bytes=1 - 2",
            "bytes=1-2-3",
            "bytes=a-b",
            "bytes=0-1;2-3",
            "bytes=0-1,x",
            "bytes=0-1,5-9",
            "bytes=0-1, 2000-",
            "bytes=2000-,3000-",
            "bytes=-0,-0",
            "bytes=٣-٤",
            "bytes=0x1-2",
            "bytes=1.0-2",
            "bytes=0-1\u{a0}",
        ] {
            assert_eq!(RequestedRange::parse(header, 1000), RequestedRange::Whole, "{header}");
        }
    }

    #[test]
    fn a_range_beyond_the_end_is_unsatisfiable() {
        for header in ["bytes=1000-", "bytes=1000-1000", "bytes=-0", "bytes=99999999999999999999999-"] {
            assert_eq!(RequestedRange::parse(header, 1000), RequestedRange::Unsatisfiable, "{header}");
        }
        assert_eq!(RequestedRange::parse("bytes=0-", 0), RequestedRange::Unsatisfiable);
        assert_eq!(RequestedRange::parse("bytes=-5", 0), RequestedRange::Whole, "a suffix is always satisfiable");
        assert_eq!(RequestedRange::parse("bytes=18446744073709551615-", u64::MAX), RequestedRange::Unsatisfiable);
    }

    proptest! {
        #[test]
        fn a_range_never_leaves_the_file(
            header in prop_oneof!["\\PC{0,40}", "bytes=[0-9, -]{0,60}"],
            total in prop_oneof![Just(0), Just(u64::MAX), any::<u64>()],
        ) {
            if let RequestedRange::Part(range) = RequestedRange::parse(&header, total) {
                prop_assert!(!range.is_empty() && *range.end() < total, "{}", header);
            }
        }
    }
}
