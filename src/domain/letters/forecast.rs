//! How many people would get a letter that is sent now, and why the others would not.

use crate::domain::text::quantity;

/// Each person is counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LetterForecast {
    /// They get it.
    pub recipients: u64,
    /// Their mailbox had a letter this month.
    pub had_letter: u64,
    pub suppressed: u64,
    /// Another address of their mailbox gets it.
    pub same_mailbox: u64,
    /// They opted out after the letter was started.
    pub opted_out: u64,
}

impl LetterForecast {
    /// How many do not get it.
    pub const fn others(&self) -> u64 {
        self.had_letter + self.suppressed + self.same_mailbox + self.opted_out
    }

    /// Says why nobody gets it, if that is so.
    pub fn nobody(&self) -> Option<String> {
        if self.recipients > 0 {
            return None;
        }
        if self.others() == 0 {
            return Some("Nobody has opted in to the monthly letter yet, so nothing was sent.".to_owned());
        }
        let wait = if self.had_letter > 0 {
            " The next letter can go out next month; what cannot wait can stand on the site as `notice` in site.toml."
        } else {
            ""
        };
        Some(format!("Nobody would get this letter, so nothing was sent: {}.{wait}", self.reasons()))
    }

    /// Says how many do not get it and why, if there are any.
    pub fn others_in_words(&self) -> Option<String> {
        let others = quantity(self.others(), "person does not get it", "people do not get it");
        (self.others() > 0).then(|| format!("{others}: {}.", self.reasons()))
    }

    /// Why the others do not get it, as the end of a sentence.
    pub fn reasons(&self) -> String {
        let reasons = [
            (self.had_letter, "had a letter this month", "had a letter this month"),
            (self.suppressed, "is suppressed", "are suppressed"),
            (self.same_mailbox, "shares the mailbox of another", "share the mailbox of another"),
            (self.opted_out, "opted out since", "opted out since"),
        ];
        let reasons = reasons.into_iter().filter(|(people, ..)| *people > 0);
        reasons.map(|(people, one, many)| quantity(people, one, many)).collect::<Vec<_>>().join(", ")
    }
}
