//! How makers sign in to the desk, and the record of what they change.
//!
//! The store enforces that a link is used once and in time, and that no more are mailed than may be.

use std::time::Duration;

use super::failure::Failure;
use super::random::{new_id, random_token};
use crate::domain::desk::{Actor, Change, CookieScope, CookieSecret, Session, SignInToken};
use crate::domain::sha256::Sha256;
use crate::domain::time::Timestamp;
use crate::domain::tokens::CredentialName;
use crate::store::{SignInLink, Store, StoreFailure};

/// The last use is recorded this often at most, so that a request is not a write.
const USE_PRECISION: Duration = Duration::from_hours(1);

/// The subject never varies, so that nobody can write to the maker by it.
const SUBJECT: &str = "Sign in to the desk";

/// Makes a link that signs a maker in, from any browser.
pub async fn create_sign_in_link(store: &Store, name: &CredentialName, now: Timestamp) -> Result<SignInToken, Failure> {
    let token = SignInToken::new(random_token()?);
    let link = SignInLink { id: new_id(now), hash: token.hash(), name, browser: None, made: now };
    store.add_sign_in_link(&link).await?;
    Ok(token)
}

/// Queues the mail of a link that signs in the browser that has this secret. Does nothing if enough were mailed.
pub async fn mail_sign_in_link(
    store: &Store,
    name: &CredentialName,
    url: impl FnOnce(&SignInToken) -> String,
    scope: CookieScope,
    now: Timestamp,
) -> Result<CookieSecret, Failure> {
    let (token, browser) = (SignInToken::new(random_token()?), CookieSecret::new(random_token()?));
    let link = SignInLink { id: new_id(now), hash: token.hash(), name, browser: Some(browser.hash(scope)), made: now };
    let text = format!(
        "This link signs you in to the desk, in the browser that asked for it, once and for ten minutes:\n\n{}\n\nIf you did \
         not ask for it, ignore this mail: nobody can use the link without that browser.\n",
        url(&token)
    );
    if !store.mail_sign_in_link(&link, (SUBJECT, &text)).await? {
        tracing::warn!("no link to sign in was mailed: as many as may be were mailed within the last hour");
    }
    Ok(browser)
}

/// Uses up a link. Returns the cookie of the new session and its name, unless the link cannot be used.
pub async fn sign_in(
    store: &Store,
    token: &SignInToken,
    browser: Option<&CookieSecret>,
    scope: CookieScope,
    now: Timestamp,
) -> Result<Option<(CookieSecret, CredentialName)>, Failure> {
    // Most links that are tried are invented, and reading takes no lock.
    if !store.has_sign_in_link(&token.hash(), now).await? {
        return Ok(None);
    }
    let cookie = CookieSecret::new(random_token()?);
    let browser = browser.map(|browser| browser.hash(scope));
    let session = (new_id(now), &cookie.hash(scope));
    let name = store.begin_session(&token.hash(), browser.as_ref(), session, now).await?;
    Ok(name.map(|name| (cookie, name)))
}

/// Returns whose session it is. The database is asked each time, so that a session that was ended works on no instance.
pub async fn find_session(store: &Store, cookie: &Sha256, now: Timestamp) -> Result<Option<Session>, StoreFailure> {
    let session = store.find_session(cookie, now).await?;
    if let Some(session) = &session
        && session.last_used.until(now) >= USE_PRECISION
    {
        store.record_session_use(session.id, now).await?;
    }
    Ok(session)
}

/// Records a change that was made.
pub async fn record_change(store: &Store, by: &Actor, change: &Change, now: Timestamp) -> Result<(), StoreFailure> {
    store.record_change(new_id(now), now, by, &change.to_string()).await
}
