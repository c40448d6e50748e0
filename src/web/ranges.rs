//! Requests for parts of a file (RFC 9110, section 14): which bytes are asked for, and whether
//! what the caller has already is of the same file.
//!
//! Knows the file's length and nothing else of it: those who answer read the bytes.

use super::http_date;
use crate::domain::limits;

/// Both ends belong to it, and both lie within the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteRange {
    pub first: u64,
    pub last: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Whole,
    Part(ByteRange),
    /// Two or more that do not overlap, in the order in which they were asked for.
    Parts(Vec<ByteRange>),
    /// All that is asked for lies beyond the end.
    Unsatisfiable,
}

impl ByteRange {
    pub(crate) const fn length(self) -> u64 {
        self.last - self.first + 1
    }

    /// The value of `Content-Range`, of a file of `total` bytes.
    pub(crate) fn content_range(self, total: u64) -> String {
        format!("bytes {}-{}/{total}", self.first, self.last)
    }

    const fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// The value of `Content-Range` where nothing that was asked for is there.
pub(crate) fn unsatisfied_content_range(total: u64) -> String {
    format!("bytes */{total}")
}

/// What the value of a `Range` header asks for, of a file of `total` bytes. What is not understood
/// asks for nothing special.
pub(crate) fn asked(range: &str, total: u64) -> Asked {
    let Some(specs) = specs(range) else { return Asked::Whole };
    let last_of_nothing = total == 0 && specs.iter().any(|spec| matches!(spec, Spec::Last(1..)));
    if specs.len() > limits::MAX_RANGES || last_of_nothing {
        return Asked::Whole;
    }
    let parts: Vec<_> = specs.iter().filter_map(|spec| spec.resolve(total)).collect();
    let overlapping = (1..parts.len()).any(|late| parts[..late].iter().any(|part| part.overlaps(parts[late])));
    match parts.as_slice() {
        [] => Asked::Unsatisfiable,
        [part] => Asked::Part(*part),
        _ if overlapping => Asked::Whole,
        _ => Asked::Parts(parts),
    }
}

/// One range as it was written.
enum Spec {
    /// `500-` or `500-999`
    From(u64, Option<u64>),
    /// `-500`
    Last(u64),
}

impl Spec {
    fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.split_once('-')?;
        match (first, last) {
            ("", count) => Some(Self::Last(number(count)?)),
            (first, "") => Some(Self::From(number(first)?, None)),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(Self::From(first, Some(last)))
            }
        }
    }

    /// The bytes that it means, if the file has any of them.
    fn resolve(&self, total: u64) -> Option<ByteRange> {
        let end = total.checked_sub(1)?;
        match *self {
            Self::From(first, last) => {
                (first <= end).then(|| ByteRange { first, last: last.map_or(end, |last| last.min(end)) })
            }
            Self::Last(count) => (count > 0).then(|| ByteRange { first: total.saturating_sub(count), last: end }),
        }
    }
}

/// All the ranges of a header, if it is one of bytes and none of them is malformed.
fn specs(range: &str) -> Option<Vec<Spec>> {
    let (unit, set) = range.split_once('=')?;
    let items = set.split(',').map(|item| item.trim_matches([' ', '\t'])).filter(|item| !item.is_empty());
    let specs: Vec<_> = items.map(Spec::parse).collect::<Option<_>>()?;
    (unit.eq_ignore_ascii_case("bytes") && !specs.is_empty()).then_some(specs)
}

/// A number too large to count with is as good as the largest: no file reaches it.
fn number(digits: &str) -> Option<u64> {
    let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    all_digits.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// Whether the value of an `If-Range` header names the file as it is now, so that a part of it fits
/// to what the caller has: the same strong tag, or exactly the same date.
pub(crate) fn is_unchanged(if_range: &str, etag: &str, last_modified: i64) -> bool {
    if if_range.ends_with('"') {
        if_range == etag && etag.starts_with('"')
    } else {
        http_date::parse(if_range) == Some(last_modified)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ETAG: &str = "\"0f1e2d\"";
    const DATE: i64 = 784_111_777;

    const fn range(first: u64, last: u64) -> ByteRange {
        ByteRange { first, last }
    }

    #[test]
    fn a_part_is_asked_for_by_its_ends_its_start_or_its_length_from_the_end() {
        for (header, part) in [
            ("bytes=0-0", range(0, 0)),
            ("bytes=0-499", range(0, 499)),
            ("bytes=500-999", range(500, 999)),
            ("bytes=500-5000", range(500, 999)),
            ("bytes=999-", range(999, 999)),
            ("bytes=-1", range(999, 999)),
            ("bytes=-1000", range(0, 999)),
            ("bytes=-1001", range(0, 999)),
            ("Bytes=007-08", range(7, 8)),
            ("bytes= 1-2\t", range(1, 2)),
            ("bytes=, ,1-2,\t,", range(1, 2)),
            ("bytes=1-2, 1000-", range(1, 2)),
            ("bytes=-0, 1-2", range(1, 2)),
            ("bytes=1-99999999999999999999999999", range(1, 999)),
            ("bytes=-99999999999999999999999999", range(0, 999)),
        ] {
            assert_eq!(asked(header, 1000), Asked::Part(part), "{header}");
        }
    }

    #[test]
    fn several_parts_come_in_the_order_asked_for() {
        assert_eq!(asked("bytes=500-599,0-1", 1000), Asked::Parts(vec![range(500, 599), range(0, 1)]));
        assert_eq!(asked("bytes=0-1,2-3", 1000), Asked::Parts(vec![range(0, 1), range(2, 3)]));
        assert_eq!(asked("bytes=0-0 , 2000- ,-1", 1000), Asked::Parts(vec![range(0, 0), range(999, 999)]));
    }

    #[test]
    fn what_is_not_understood_asks_for_the_whole_file() {
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
            "bytes=+1-2",
            "bytes=1 - 2",
            "bytes=1-2-3",
            "bytes=a-b",
            "bytes=0-1;2-3",
            "bytes=0-1,x",
            "bytes=2000-,5-4",
            "bytes=٣-٤",
            "bytes=0x1-2",
            "bytes=1.0-2",
            "bytes=0-1\u{a0}",
        ] {
            assert_eq!(asked(header, 1000), Asked::Whole, "{header}");
        }
    }

    #[test]
    fn what_lies_beyond_the_end_is_not_there() {
        for header in ["bytes=1000-", "bytes=1000-1000,2000-", "bytes=-0", "bytes=99999999999999999999999-"] {
            assert_eq!(asked(header, 1000), Asked::Unsatisfiable, "{header}");
        }
        assert_eq!(asked("bytes=0-", 0), Asked::Unsatisfiable);
        assert_eq!(asked("bytes=-0", 0), Asked::Unsatisfiable);
        assert_eq!(asked("bytes=-5", 0), Asked::Whole, "the last bytes of nothing are all of it");
        assert_eq!(asked("bytes=18446744073709551615-", u64::MAX), Asked::Unsatisfiable);
        assert_eq!(unsatisfied_content_range(1000), "bytes */1000");
    }

    #[test]
    fn who_asks_for_too_much_at_once_gets_the_whole_file() {
        let ranges = |count: u64| (0..count).map(|n| format!("{}-{}", 2 * n, 2 * n)).collect::<Vec<_>>().join(",");
        assert!(matches!(asked(&format!("bytes={}", ranges(16)), 1000), Asked::Parts(parts) if parts.len() == 16));
        assert_eq!(asked(&format!("bytes={}", ranges(17)), 1000), Asked::Whole);
        assert_eq!(asked(&format!("bytes={}", "2000-,".repeat(17)), 1000), Asked::Whole);
        for overlapping in
            ["bytes=0-,0-", "bytes=0-10,10-20", "bytes=10-20,0-10", "bytes=100-200,0-1,150-160", "bytes=0-1,-1000"]
        {
            assert_eq!(asked(overlapping, 1000), Asked::Whole, "{overlapping}");
        }
    }

    #[test]
    fn only_the_same_strong_tag_or_date_is_unchanged() {
        assert!(is_unchanged(ETAG, ETAG, DATE));
        assert!(is_unchanged("Sun, 06 Nov 1994 08:49:37 GMT", ETAG, DATE));
        for other in [
            "",
            "*",
            "\"",
            "\"0f1e2e\"",
            "0f1e2d",
            "W/\"0f1e2d\"",
            "\"0f1e2d\", \"0f1e2d\"",
            "Sun, 06 Nov 1994 08:49:38 GMT",
            "Sun, 06 Nov 1994 08:49:36 GMT",
            "Sun, 06 Nov 1994 08:49:37",
        ] {
            assert!(!is_unchanged(other, ETAG, DATE), "{other}");
        }
        assert!(!is_unchanged("W/\"a\"", "W/\"a\"", DATE), "weak tags promise nothing of bytes");
    }

    /// A range as somebody might mean it: from, to, both ends counted.
    type Meant = (Option<u64>, Option<u64>);

    fn meant() -> impl Strategy<Value = Meant> {
        prop_oneof![
            16 => (0..400_u64, 0..20_u64).prop_map(|(first, more)| (Some(first), Some(first + more))),
            1 => (0..500_u64).prop_map(|first| (Some(first), None)),
            1 => (0..30_u64).prop_map(|count| (None, Some(count))),
            1 => (proptest::option::of(0..400_u64), proptest::option::of(0..400_u64)),
        ]
    }

    fn written((first, last): Meant) -> String {
        let text = |number: Option<u64>| number.map_or(String::new(), |number| number.to_string());
        format!("{}-{}", text(first), text(last))
    }

    /// The bytes meant, one by one.
    fn bytes(meant: Meant, total: u64) -> Vec<u64> {
        (0..total)
            .filter(|place| match meant {
                (Some(first), last) => first <= *place && last.is_none_or(|last| *place <= last),
                (None, Some(count)) => total - place <= count,
                (None, None) => false,
            })
            .collect()
    }

    fn given(asked: &Asked) -> Vec<Vec<u64>> {
        match asked {
            Asked::Whole | Asked::Unsatisfiable => Vec::new(),
            Asked::Part(part) => vec![(part.first..=part.last).collect()],
            Asked::Parts(parts) => parts.iter().map(|part| (part.first..=part.last).collect()).collect(),
        }
    }

    proptest! {
        #[test]
        fn those_bytes_are_given_that_were_asked_for(
            meant in proptest::collection::vec(meant(), 1..8),
            comma in "[ \t]{0,2},[ \t,]{0,2}",
            total in 1..400_u64,
        ) {
            let header = format!("bytes={}", meant.iter().copied().map(written).collect::<Vec<_>>().join(&comma));
            let malformed = meant.iter().any(|meant| match *meant {
                (None, None) => true,
                (Some(first), Some(last)) => last < first,
                _ => false,
            });
            let wanted: Vec<_> =
                meant.iter().map(|meant| bytes(*meant, total)).filter(|bytes| !bytes.is_empty()).collect();
            let mut places = wanted.concat();
            places.sort_unstable();
            let twice = places.windows(2).any(|pair| pair[0] == pair[1]);
            let answer = asked(&header, total);
            if malformed || twice {
                prop_assert_eq!(answer, Asked::Whole, "{}", header);
            } else if wanted.is_empty() {
                prop_assert_eq!(answer, Asked::Unsatisfiable, "{}", header);
            } else {
                prop_assert_eq!(matches!(answer, Asked::Part(_)), wanted.len() == 1);
                prop_assert_eq!(given(&answer), wanted, "{}", header);
            }
        }

        #[test]
        fn no_header_leads_astray(
            header in prop_oneof!["\\PC{0,40}", "bytes=[0-9, -]{0,60}"],
            total in prop_oneof![Just(0), Just(u64::MAX), any::<u64>()],
        ) {
            let parts = match asked(&header, total) {
                Asked::Whole | Asked::Unsatisfiable => Vec::new(),
                Asked::Part(part) => vec![part],
                Asked::Parts(parts) => parts,
            };
            prop_assert!(parts.iter().all(|part| part.first <= part.last && part.last < total), "{}", header);
            is_unchanged(&header, ETAG, DATE);
        }
    }
}
