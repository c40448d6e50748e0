//! Everybody who is mailed gets a way out.

use std::collections::HashMap;

use super::Failure;
use crate::domain::email::EmailAddress;
use crate::domain::time::Timestamp;
use crate::domain::unsubscribe::UnsubscribeToken;
use crate::store::Store;

/// The token of each of these people, by the compared form of the address; made where there is none.
///
/// # Errors
/// `Unavailable` when it cannot be recorded, or there is no chance to be had.
pub async fn unsubscribe_tokens(
    store: &Store,
    people: &[EmailAddress],
    at: Timestamp,
) -> Result<HashMap<String, UnsubscribeToken>, Failure> {
    let fresh = people.iter().map(|email| Ok((email.clone(), new_token()?))).collect::<Result<Vec<_>, Failure>>()?;
    Ok(store.unsubscribe_tokens(&fresh, at).await?)
}

fn new_token() -> Result<UnsubscribeToken, Failure> {
    let mut bytes = [0; UnsubscribeToken::BYTES];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::Unavailable(format!("the system gives no chance: {error}")))?;
    Ok(UnsubscribeToken::from_random(bytes))
}
