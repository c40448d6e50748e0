//! Creates tokens, and finds out what a token that was sent may do.

use std::time::Duration;

use super::failure::Failure;
use super::random::random_token;
use crate::domain::time::{Day, Timestamp};
use crate::domain::tokens::{CredentialName, Token, TokenRight, TokenSecret};
use crate::store::{Store, StoreFailure};

/// The last use is recorded this often at most, so that a request is not a write.
const USE_PRECISION: Duration = Duration::from_hours(1);

/// Creates a token. Returns `None` if there is one of this name.
pub async fn create_token(
    store: &Store,
    name: CredentialName,
    may: TokenRight,
    until: Option<Day>,
    now: Timestamp,
) -> Result<Option<TokenSecret>, Failure> {
    let secret = TokenSecret::new(random_token()?);
    let token = Token { name, may, created: now, until, last_used: None };
    Ok(store.add_token(&token, &secret.hash()).await?.then_some(secret))
}

/// Returns whose token this is, if it may do this today. The database is asked each time, so that a revoked token works on no
/// instance.
pub async fn authorize_token(
    store: &Store,
    secret: &TokenSecret,
    may: TokenRight,
    now: Timestamp,
) -> Result<Option<CredentialName>, StoreFailure> {
    let Some(token) = store.find_token(&secret.hash(), may).await? else { return Ok(None) };
    if token.until.is_some_and(|last_day| Day::of(now) > last_day) {
        return Ok(None);
    }
    if token.last_used.is_none_or(|last_used| last_used.until(now) >= USE_PRECISION) {
        store.record_token_use(&token.name, now).await?;
    }
    Ok(Some(token.name))
}
