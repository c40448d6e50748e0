//! A message to the makers.

use std::time::Duration;

use uuid::Uuid;

use super::email::EmailAddress;
use super::text::{MessageText, SenderName};
use super::time::Timestamp;

/// Somebody writes to the makers and is answered at `email`.
#[derive(Clone, Debug)]
pub struct ContactMessage {
    pub name: Option<SenderName>,
    pub email: EmailAddress,
    pub message: MessageText,
}

/// A message with its name and the time it came.
#[derive(Clone, Debug)]
pub struct ReceivedMessage {
    pub id: Uuid,
    pub message: ContactMessage,
    pub at: Timestamp,
}

/// What people call a message or a mail by: the end of its name, as the beginning is the time.
#[must_use]
pub fn reference(id: Uuid) -> String {
    let name = id.simple().to_string();
    name[name.len() - 8..].to_owned()
}

/// For how long the same words from the same sender are one message, so that a caller who got no
/// answer may repeat the request.
pub const SAME_MESSAGE_WITHIN: Duration = Duration::from_hours(24);

/// How many messages that wait together are mailed one by one. More become one digest, so that a
/// flood of messages is no flood of mails.
pub const MOST_MAILED_SINGLY: usize = 5;

/// Most messages in one digest: at their longest, about five megabytes of mail.
pub const MOST_IN_DIGEST: usize = 250;

/// For how long at least it is tried to hand a message over before it is given up on.
pub const TRIED_FOR: Duration = Duration::from_hours(7 * 24);

/// How long to wait after so many tries in vain: half a minute, then twice as long each time, up to
/// three hours.
#[must_use]
pub fn pause_after(tries: u32) -> Duration {
    const FIRST: Duration = Duration::from_secs(30);
    const LONGEST: Duration = Duration::from_hours(3);
    let doublings = tries.saturating_sub(1).min(16);
    LONGEST.min(FIRST * 2_u32.pow(doublings))
}

/// How far apart two mails to the makers are when so many went within the last hour: at first not
/// at all, and a second more for each beyond the tenth. What comes meanwhile gathers in a digest.
/// However much comes, that is under a hundred mails in the first hour, and about one a minute then.
#[must_use]
pub fn pause_between_mails(in_the_last_hour: u32) -> Duration {
    Duration::from_secs(u64::from(in_the_last_hour.saturating_sub(10)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_retry_comes_within_a_minute_and_the_last_after_a_week() {
        assert!(pause_after(1) <= Duration::from_mins(1));
        let mut waited = Duration::ZERO;
        let mut tries = 0;
        while waited < TRIED_FOR {
            tries += 1;
            assert!(pause_after(tries) <= pause_after(tries + 1));
            waited += pause_after(tries);
        }
        assert!((40..200).contains(&tries), "{tries}");
        assert_eq!(pause_after(u32::MAX), pause_after(30));
    }

    #[test]
    fn a_reference_is_short_and_differs_between_messages_of_one_moment() {
        let id = Uuid::parse_str("0199a4b0-0000-7000-8000-0123456789ab").unwrap();
        assert_eq!(reference(id), "456789ab");
    }
}
