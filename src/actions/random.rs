//! Ids, and tokens that nobody can guess.

use uuid::{NoContext, Uuid};

use super::failure::Failure;
use crate::domain::letters::RandomToken;
use crate::domain::time::Timestamp;

/// Returns a version 7 UUID for the time `at`, so that ids sort by time.
pub(super) fn new_id(at: Timestamp) -> Uuid {
    let seconds = u64::try_from(at.unix_seconds()).unwrap_or_default();
    let nanos = u32::try_from(at.unix_millis().rem_euclid(1000)).unwrap_or_default() * 1_000_000;
    Uuid::new_v7(uuid::Timestamp::from_unix(NoContext, seconds, nanos))
}

/// Returns a token that cannot be guessed.
pub(super) fn random_token<const BYTES: usize>() -> Result<RandomToken<BYTES>, Failure> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::Unavailable(format!("the system's random generator failed: {error}")))?;
    Ok(RandomToken::from_random(bytes))
}
