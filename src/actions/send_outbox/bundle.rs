//! Which messages go in the next mail.

use uuid::Uuid;

use crate::domain::limits::{DIGEST_THRESHOLD, MAX_DIGEST_MESSAGES};
use crate::store::DueMessage;

/// Chooses the messages of the next mail, and its id: that of a single message, or `digest_id`.
pub(super) fn bundle(due: &[DueMessage], digest_id: Uuid) -> Option<(Uuid, Vec<DueMessage>)> {
    let first = due.first()?;
    if let Some(mail) = first.mail {
        return Some((mail, due.iter().filter(|message| message.mail == Some(mail)).copied().collect()));
    }
    let mut alike: Vec<_> = due.iter().filter(|message| message.max_digest == first.max_digest).copied().collect();
    let size = if alike.len() > DIGEST_THRESHOLD { first.max_digest.unwrap_or(MAX_DIGEST_MESSAGES) } else { 1 };
    alike.truncate(size);
    Some((if alike.len() == 1 { first.id } else { digest_id }, alike))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actions::new_id;
    use crate::domain::time::Timestamp;

    fn waiting(count: usize) -> Vec<DueMessage> {
        let at = Timestamp::from_unix_millis(0);
        (0..count).map(|_| DueMessage { id: new_id(at), mail: None, max_digest: None, tries: 0 }).collect()
    }

    /// The number of messages in the next mail, and whether it is a digest.
    fn next_mail(due: &[DueMessage]) -> (usize, bool) {
        let digest_id = Uuid::nil();
        bundle(due, digest_id).map_or((0, false), |(mail, messages)| (messages.len(), mail == digest_id))
    }

    #[test]
    fn more_than_five_messages_become_a_digest() {
        assert_eq!(next_mail(&[]), (0, false));
        assert_eq!(next_mail(&waiting(1)), (1, false));
        assert_eq!(next_mail(&waiting(5)), (1, false));
        assert_eq!(next_mail(&waiting(6)), (6, true));
        assert_eq!(next_mail(&waiting(MAX_DIGEST_MESSAGES + 1)), (MAX_DIGEST_MESSAGES, true));
    }

    #[test]
    fn a_mail_that_may_have_arrived_is_repeated_with_the_same_messages() {
        let mail = Uuid::max();
        let mut due = waiting(9);
        due[..2].iter_mut().for_each(|message| message.mail = Some(mail));
        let (repeated, messages) = bundle(&due, Uuid::nil()).unwrap();
        assert_eq!((repeated, messages.as_slice()), (mail, &due[..2]));
    }

    #[test]
    fn rejected_messages_go_in_smaller_digests_of_their_own() {
        let mut due = waiting(20);
        due[..8].iter_mut().for_each(|message| message.max_digest = Some(4));
        assert_eq!(bundle(&due, Uuid::nil()).unwrap().1, &due[..4]);
        due[..8].iter_mut().for_each(|message| message.max_digest = Some(1));
        assert_eq!(bundle(&due, Uuid::nil()).unwrap(), (due[0].id, vec![due[0]]));
    }
}
