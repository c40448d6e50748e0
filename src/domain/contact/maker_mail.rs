//! What the makers are told by mail, and how much: at most [`MAX_MAKER_MAILS`] emails and [`MAX_MAKER_MAIL_BYTES`] in any
//! [`MAKER_MAIL_PERIOD`]. One email of each period is kept for a summary, which says that more messages wait.

use crate::domain::limits::{MAKER_MAIL_PERIOD, MAX_MAKER_MAIL_BYTES, MAX_MAKER_MAILS, SUMMARY_MAIL_BYTES};
use crate::domain::parse::word_enum;
use crate::domain::time::Timestamp;

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

/// Something that does not mend itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What it is about, as a title.
    pub about: &'static str,
    /// What is wrong, one or more sentences.
    pub problem: String,
    /// What to do, one or more sentences.
    pub to_do: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

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
