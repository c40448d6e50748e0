//! Contact messages, and when to forward them by mail.

use std::time::Duration;

use uuid::Uuid;

use crate::domain::mail::EmailAddress;
use crate::domain::text::{MessageText, SenderName};
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
/// collected in a digest, so that under a flood the limit of `maker_mail.rs` is reached later.
pub fn mail_interval(sent_in_last_hour: u32) -> Duration {
    Duration::from_secs(u64::from(sent_in_last_hour.saturating_sub(10)))
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
}
