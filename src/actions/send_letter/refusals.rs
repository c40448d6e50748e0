//! The permanent rejections of one run of `letter send`, and what they mean for the recipients.
//!
//! A refused mailbox is suppressed once the mail server has accepted a letter to another recipient in the same run,
//! before or after it: until then the fault may be ours. [`MAX_CONSECUTIVE_REFUSALS`] in a row stop the run, and those
//! recipients wait again as if nothing had been sent to them.
//!
//! This is kept in memory. If the program is killed, the recipients that were refused before the first acceptance stay
//! refused and are not suppressed; they get the next letter.

use crate::domain::email::EmailAddress;
use crate::domain::limits::MAX_CONSECUTIVE_REFUSALS;

#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// Whether the mail server has accepted a letter in this run.
    any_accepted: bool,
    /// The refusals since the last acceptance.
    in_a_row: Vec<Refusal>,
}

#[derive(Debug)]
struct Refusal {
    email: EmailAddress,
    is_about_mailbox: bool,
    suppressed: bool,
}

impl Refusals {
    /// Notes a refusal. Returns whether the address is to be suppressed now.
    pub(super) fn refused(&mut self, email: &EmailAddress, is_about_mailbox: bool) -> bool {
        let suppressed = is_about_mailbox && self.any_accepted;
        self.in_a_row.push(Refusal { email: email.clone(), is_about_mailbox, suppressed });
        suppressed
    }

    /// Returns the addresses that an acceptance suppresses.
    pub(super) fn to_suppress_if_accepted(&self) -> Vec<EmailAddress> {
        let held = self.in_a_row.iter().filter(|refusal| refusal.is_about_mailbox && !refusal.suppressed);
        held.map(|refusal| refusal.email.clone()).collect()
    }

    pub(super) fn accepted(&mut self) {
        self.any_accepted = true;
        self.in_a_row.clear();
    }

    pub(super) fn is_too_many(&self) -> bool {
        self.in_a_row.len() >= MAX_CONSECUTIVE_REFUSALS
    }

    /// Whether there are refusals, and no acceptance shows that the mail server works.
    pub(super) fn are_unconfirmed(&self) -> bool {
        !self.any_accepted && !self.in_a_row.is_empty()
    }

    /// Forgets the refusals in a row. Returns their addresses, and those among them that were suppressed.
    pub(super) fn take_back(&mut self) -> (Vec<EmailAddress>, Vec<EmailAddress>) {
        let refusals = std::mem::take(&mut self.in_a_row);
        let suppressed = refusals.iter().filter(|refusal| refusal.suppressed).map(|refusal| refusal.email.clone());
        let suppressed = suppressed.collect();
        (refusals.into_iter().map(|refusal| refusal.email).collect(), suppressed)
    }
}
