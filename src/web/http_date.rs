//! Moments as HTTP writes them: `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, IMF-fixdate).
//!
//! The two forms that HTTP once had are not read: nobody who repeats a date of ours writes them.

use jiff::Timestamp;
use jiff::fmt::strtime;
use jiff::tz::Offset;

const FORM: &str = "%a, %d %b %Y %H:%M:%S GMT";

pub(crate) fn format(unix_seconds: i64) -> String {
    Timestamp::from_second(unix_seconds).unwrap_or(Timestamp::MAX).strftime(FORM).to_string()
}

pub(crate) fn parse(text: &str) -> Option<i64> {
    let date = strtime::parse(FORM, text).ok()?.to_datetime().ok()?;
    let seconds = Offset::UTC.to_timestamp(date).ok()?.as_second();
    (format(seconds) == text).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dates_are_written_and_read_as_others_do() {
        assert_eq!(format(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(parse("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(parse("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
    }

    #[test]
    fn what_is_written_otherwise_is_no_date() {
        for text in [
            "",
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "sun, 06 nov 1994 08:49:37 gmt",
            "Sun, 06 Nov 1994 08:49:37 +0000",
            "Sun, 06 Nov 1994 08:49:37 GMT ",
            "Sun, 06 Nov 1994 08:49:60 GMT",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_again(seconds in 0..253_402_207_200_i64) {
            prop_assert_eq!(parse(&format(seconds)), Some(seconds));
        }

        #[test]
        fn nothing_leads_astray(seconds in any::<i64>(), text in "[SMTWadenu, 0-9GMTov:+-]{0,40}") {
            prop_assert!(format(seconds).ends_with(" GMT"));
            let read = parse(&text);
            prop_assert!(read.is_none_or(|seconds| format(seconds) == text));
        }
    }
}
