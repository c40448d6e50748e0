//! Contact messages: when they are forwarded by mail, how much mail the makers get, and how long messages are kept.

use std::fmt;
use std::time::Duration;

use jiff::Span;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use uuid::Uuid;

use crate::domain::limits::{MAKER_MAIL_PERIOD, MAX_MAKER_MAIL_BYTES, MAX_MAKER_MAILS, SUMMARY_MAIL_BYTES};
use crate::domain::mail::EmailAddress;
use crate::domain::parse::{Invalid, word_enum};
use crate::domain::text::{MessageText, SenderName, quantity};
use crate::domain::time::Timestamp;

/// A message to the makers. Replies go to `email`.
#[derive(Clone, Debug)]
pub struct ContactMessage {
    pub name: Option<SenderName>,
    pub email: EmailAddress,
    pub text: MessageText,
}

/// A message with its id and the time it was received.
#[derive(Clone, Debug)]
pub struct ReceivedMessage {
    pub id: Uuid,
    pub contact: ContactMessage,
    pub at: Timestamp,
}

/// Returns the reference, a short id to show to people: the last 8 hexadecimal digits, because the first
/// ones are a timestamp.
pub fn reference(id: Uuid) -> String {
    let id = id.simple().to_string();
    id[id.len() - 8..].to_owned()
}

/// Returns the delay after this many failed attempts: half a minute, doubled each time, up to three
/// hours.
pub fn retry_delay(attempts: u32) -> Duration {
    const FIRST: Duration = Duration::from_secs(30);
    const MAX: Duration = Duration::from_hours(3);
    let doublings = attempts.saturating_sub(1).min(16);
    MAX.min(FIRST * 2_u32.pow(doublings))
}

/// Returns the minimum interval between two emails to the makers, given the number of emails in the
/// last hour: 0 for up to 10 emails, then 1 s per additional email. Messages that arrive meanwhile are
/// collected in a digest, so that under a flood the limit on mails to the makers is reached later.
pub fn mail_interval(sent_in_last_hour: u32) -> Duration {
    Duration::from_secs(u64::from(sent_in_last_hour.saturating_sub(10)))
}

word_enum! {
    pub enum MakerMailKind {
        /// One contact message, or a digest of several.
        Messages = "messages",
        /// Says how many messages wait because the limit is reached.
        Summary = "summary",
    }
}

/// The emails of the last [`MAKER_MAIL_PERIOD`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecentMails {
    pub count: u32,
    pub bytes: u64,
    /// Whether one of them is a summary.
    pub has_summary: bool,
    pub oldest: Option<Timestamp>,
    pub latest: Option<Timestamp>,
}

impl RecentMails {
    /// Whether an email of this kind and size may be sent now.
    pub fn has_room_for(&self, kind: MakerMailKind, bytes: u64) -> bool {
        let (kept_count, kept_bytes) = match (kind, self.has_summary) {
            (MakerMailKind::Messages, false) => (1, SUMMARY_MAIL_BYTES),
            (MakerMailKind::Messages, true) | (MakerMailKind::Summary, false) => (0, 0),
            (MakerMailKind::Summary, true) => return false,
        };
        self.count + kept_count < MAX_MAKER_MAILS
            && self.bytes.saturating_add(bytes).saturating_add(kept_bytes) <= MAX_MAKER_MAIL_BYTES
    }

    /// When there is more room than now.
    pub fn room_at(&self) -> Option<Timestamp> {
        self.oldest.map(|oldest| oldest.after(MAKER_MAIL_PERIOD))
    }
}

/// A problem that needs the attention of the makers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What it is about, as a title.
    pub about: &'static str,
    /// What is wrong, one or more sentences.
    pub problem: String,
    /// What to do, one or more sentences.
    pub to_do: &'static str,
}

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
    use crate::domain::limits::FORWARD_RETRY_PERIOD;

    #[test]
    fn the_first_retry_comes_within_a_minute_and_the_last_after_a_week() {
        assert!(retry_delay(1) <= Duration::from_mins(1));
        let mut waited = Duration::ZERO;
        let mut attempts = 0;
        while waited < FORWARD_RETRY_PERIOD {
            attempts += 1;
            assert!(retry_delay(attempts) <= retry_delay(attempts + 1));
            waited += retry_delay(attempts);
        }
        assert!((40..200).contains(&attempts), "{attempts}");
        assert_eq!(retry_delay(u32::MAX), retry_delay(30));
    }

    #[test]
    fn a_reference_differs_between_messages_of_the_same_millisecond() {
        let id = Uuid::parse_str("0199a4b0-0000-7000-8000-0123456789ab").unwrap();
        assert_eq!(reference(id), "456789ab");
    }

    #[test]
    fn the_last_email_of_a_period_is_kept_for_the_summary() {
        let recent = |count, has_summary| RecentMails { count, has_summary, ..RecentMails::default() };
        assert!(recent(MAX_MAKER_MAILS - 2, false).has_room_for(MakerMailKind::Messages, 1));
        assert!(!recent(MAX_MAKER_MAILS - 1, false).has_room_for(MakerMailKind::Messages, 1));
        assert!(recent(MAX_MAKER_MAILS - 1, false).has_room_for(MakerMailKind::Summary, 1));
        assert!(recent(MAX_MAKER_MAILS - 1, true).has_room_for(MakerMailKind::Messages, 1));
        assert!(!recent(MAX_MAKER_MAILS - 1, true).has_room_for(MakerMailKind::Summary, 1), "one in a period");
        assert!(!recent(MAX_MAKER_MAILS, true).has_room_for(MakerMailKind::Messages, 1));
    }

    #[test]
    fn bytes_are_limited_too() {
        let recent =
            RecentMails { count: 1, bytes: MAX_MAKER_MAIL_BYTES - SUMMARY_MAIL_BYTES, ..RecentMails::default() };
        assert!(recent.has_room_for(MakerMailKind::Messages, 0));
        assert!(!recent.has_room_for(MakerMailKind::Messages, 1));
        assert!(recent.has_room_for(MakerMailKind::Summary, SUMMARY_MAIL_BYTES));
    }

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
