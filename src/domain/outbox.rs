//! Mail that waits: when a failed mail is tried again, how mails to the makers are paced, how much they get in an hour, and what an
//! alert says.

use std::time::Duration;

use super::limits::{MAKER_MAIL_PERIOD, MAX_MAKER_MAIL_BYTES, MAX_MAKER_MAILS, SUMMARY_MAIL_BYTES};
use super::parse::word_enum;
use super::time::Timestamp;

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
    pub to_do: String,
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
}
