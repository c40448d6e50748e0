//! The permanent rejections of one run of `letter send`, and what they mean for the recipients.
//!
//! A mailbox that the server rejects is suppressed once the server has accepted a letter to another recipient in the same run,
//! before or after it: until then the fault may be ours. Anybody can sign up with addresses that do not exist, so such
//! rejections do not stop the run, unless the server has accepted nothing in it and rejects a mail to the makers, too.
//!
//! Other rejections are about us: [`MAX_CONSECUTIVE_REFUSALS`] of them without an acceptance in between stop the run, and those
//! recipients wait again as if nothing had been sent to them.
//!
//! This is kept in memory. If the program is killed, the recipients that were refused before the first acceptance stay
//! refused and are not suppressed; they get the next letter.

use std::mem;

use crate::domain::limits::MAX_CONSECUTIVE_REFUSALS;
use crate::domain::mail::EmailAddress;

#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// Whether the mail server has accepted a letter in this run.
    any_accepted: bool,
    /// Whether it has accepted a mail to the makers, which shows that it accepts our mail.
    makers_accepted: bool,
    /// The mailboxes that it rejected before it accepted a letter.
    held_mailboxes: Vec<EmailAddress>,
    /// How many there were when a mail to the makers was last neither accepted nor refused.
    held_when_unknown: usize,
    /// The recipients that it refused for other reasons since it accepted a letter.
    others: Vec<EmailAddress>,
}

impl Refusals {
    /// Notes a rejected mailbox. Returns whether the address is to be suppressed now.
    pub(super) fn mailbox_rejected(&mut self, email: &EmailAddress) -> bool {
        if !self.any_accepted {
            self.held_mailboxes.push(email.clone());
        }
        self.any_accepted
    }

    /// Notes a refusal for another reason. Returns whether there were too many.
    pub(super) fn refused(&mut self, email: &EmailAddress) -> bool {
        self.others.push(email.clone());
        self.others.len() >= MAX_CONSECUTIVE_REFUSALS
    }

    /// The addresses that an acceptance suppresses.
    pub(super) fn to_suppress_if_accepted(&self) -> Vec<EmailAddress> {
        self.held_mailboxes.clone()
    }

    pub(super) fn accepted(&mut self) {
        self.any_accepted = true;
        self.held_mailboxes.clear();
        self.others.clear();
    }

    /// Whether so many mailboxes were rejected, and nothing else accepted, that a mail to the makers has to show whether the
    /// mail server rejects all of them.
    pub(super) fn need_mail_to_makers(&self) -> bool {
        !self.makers_accepted && self.held_mailboxes.len() >= self.held_when_unknown + MAX_CONSECUTIVE_REFUSALS
    }

    pub(super) fn mail_to_makers_accepted(&mut self) {
        self.makers_accepted = true;
    }

    /// The mail to the makers was neither accepted nor refused. Another one is due after as many rejected mailboxes.
    pub(super) fn mail_to_makers_unknown(&mut self) {
        self.held_when_unknown = self.held_mailboxes.len();
    }

    /// Forgets those who were refused for other reasons, and returns them.
    pub(super) fn take_others(&mut self) -> Vec<EmailAddress> {
        mem::take(&mut self.others)
    }

    /// Forgets the refusals of a run in which nothing was accepted, and returns them.
    pub(super) fn take_unconfirmed(&mut self) -> Vec<EmailAddress> {
        if self.any_accepted { Vec::new() } else { [self.take_others(), mem::take(&mut self.held_mailboxes)].concat() }
    }
}
