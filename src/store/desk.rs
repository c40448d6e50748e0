//! Links to sign in, sessions of the desk, and what the makers did. Secrets are stored as hashes.

use uuid::Uuid;

use super::connection::{Store, StoreFailure, Transaction, from_row_struct, parse_id, values};
use super::tasks::Task;
use crate::domain::desk::{Actor, ActorKind, RecordedChange, Session};
use crate::domain::limits::{ACTIVITY_LIFE, MAX_SIGN_IN_MAILS, SESSION_LIFE, SIGN_IN_LINK_LIFE, SIGN_IN_MAIL_PERIOD};
use crate::domain::paging::PageStart;
use crate::domain::sha256::Sha256;
use crate::domain::time::Timestamp;
use crate::domain::tokens::CredentialName;

const INSERT_LINK: &str = "INSERT INTO sign_in_links (id, hash, name, browser, expires_at) VALUES ($1, $2, $3, $4, $5)";

/// Used ones count, too.
const COUNT_MAILED_LINKS: &str = "SELECT COUNT(*) FROM sign_in_links WHERE expires_at > $1 AND browser IS NOT NULL";

const ENQUEUE_LINK: &str =
    "INSERT INTO outbox (id, kind, state, at, subject, body) VALUES ($1, 'sign-in', 'waiting', $2, $3, $4)";

const SELECT_LINK: &str = "SELECT expires_at FROM sign_in_links WHERE hash = $1 AND expires_at > $2";

const USE_LINK: &str = "UPDATE sign_in_links SET hash = NULL \
     WHERE hash = $1 AND expires_at > $2 AND (browser IS NULL OR browser = $3) RETURNING name";

const INSERT_SESSION: &str = "INSERT INTO sessions (id, hash, name, started_at, used_at) VALUES ($1, $2, $3, $4, $4)";

const SELECT_SESSION: &str = "SELECT id, name, started_at, used_at FROM sessions WHERE hash = $1 AND started_at > $2";

const SELECT_SESSIONS: &str =
    "SELECT id, name, started_at, used_at FROM sessions WHERE started_at > $1 ORDER BY id DESC";

const RECORD_SESSION_USE: &str = "UPDATE sessions SET used_at = $2 WHERE id = $1";

const DELETE_SESSION: &str = "DELETE FROM sessions WHERE id = $1 RETURNING name";

const INSERT_ACTIVITY: &str = "INSERT INTO activity (id, at, via, name, what) VALUES ($1, $2, $3, $4, $5)";

const SELECT_OLDER_ACTIVITY: &str =
    "SELECT id, at, via, name, what FROM activity WHERE id < $1 ORDER BY id DESC LIMIT $2";

const SELECT_NEWER_ACTIVITY: &str = "SELECT id, at, via, name, what FROM activity WHERE id > $1 ORDER BY id LIMIT $2";

/// Mails whose links are unknown, because they are those of a backup. The links of the last period are still counted.
const PRUNE: [&str; 4] = [
    "DELETE FROM outbox WHERE kind = 'sign-in' AND id NOT IN (SELECT id FROM sign_in_links WHERE expires_at > $1)",
    "DELETE FROM sign_in_links WHERE expires_at <= $1",
    "DELETE FROM sessions WHERE started_at <= $1",
    "DELETE FROM activity WHERE at <= $1",
];

from_row_struct! {
    struct SessionRow {
        id: String,
        name: String,
        started_at: Timestamp,
        used_at: Timestamp,
    }
}

from_row_struct! {
    struct ActivityRow {
        id: String,
        at: Timestamp,
        via: String,
        name: Option<String>,
        what: String,
    }
}

/// A link to sign in.
#[derive(Debug)]
pub struct SignInLink<'a> {
    pub id: Uuid,
    pub hash: Sha256,
    pub name: &'a CredentialName,
    /// What the browser has that asked for it. `None`: any browser may use it.
    pub browser: Option<Sha256>,
    pub made: Timestamp,
}

impl Store {
    pub async fn add_sign_in_link(&self, link: &SignInLink<'_>) -> Result<(), StoreFailure> {
        let mut tx = self.begin().await?;
        tx.insert_sign_in_link(link).await?;
        tx.commit().await
    }

    /// Adds a link and its mail. Returns `false` if as many were mailed as may be, by all instances together.
    pub async fn mail_sign_in_link(
        &self,
        link: &SignInLink<'_>,
        (subject, text): (&str, &str),
    ) -> Result<bool, StoreFailure> {
        let mut tx = self.begin().await?;
        // One after the other, because they count.
        tx.record_task(Task::SignInMail, link.made).await?;
        let since = link.made.before(SIGN_IN_MAIL_PERIOD).after(SIGN_IN_LINK_LIFE);
        let mailed: i64 = tx.run(COUNT_MAILED_LINKS, values![since]).await?.one::<(i64,)>()?.0;
        if mailed >= MAX_SIGN_IN_MAILS {
            return Ok(false);
        }
        tx.insert_sign_in_link(link).await?;
        tx.run(ENQUEUE_LINK, values![link.id, link.made, subject, text]).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Whether the link is known, unused and not expired. Only the browser that asked for it can use it.
    pub async fn has_sign_in_link(&self, hash: &Sha256, now: Timestamp) -> Result<bool, StoreFailure> {
        Ok(!self.run(SELECT_LINK, values![hash.hex(), now]).await?.column::<i64>()?.is_empty())
    }

    /// Uses a link up, and begins a session. Returns `None` if the link cannot be used.
    pub async fn begin_session(
        &self,
        link: &Sha256,
        browser: Option<&Sha256>,
        (id, cookie): (Uuid, &Sha256),
        now: Timestamp,
    ) -> Result<Option<CredentialName>, StoreFailure> {
        let mut tx = self.begin().await?;
        let browser = browser.map(Sha256::hex);
        let Some(name) = tx.run(USE_LINK, values![link.hex(), now, browser]).await?.column::<String>()?.pop() else {
            return Ok(None);
        };
        tx.run(INSERT_SESSION, values![id, cookie.hex(), name.as_str(), now]).await?;
        tx.commit().await?;
        Ok(Some(CredentialName::from_stored(name)))
    }

    pub async fn find_session(&self, cookie: &Sha256, now: Timestamp) -> Result<Option<Session>, StoreFailure> {
        let values = values![cookie.hex(), now.before(SESSION_LIFE)];
        self.run(SELECT_SESSION, values).await?.first()?.map(SessionRow::parse).transpose()
    }

    /// Returns all sessions, the newest first.
    pub async fn sessions(&self, now: Timestamp) -> Result<Vec<Session>, StoreFailure> {
        let rows = self.run(SELECT_SESSIONS, values![now.before(SESSION_LIFE)]).await?.all()?;
        rows.into_iter().map(SessionRow::parse).collect()
    }

    pub async fn record_session_use(&self, id: Uuid, at: Timestamp) -> Result<(), StoreFailure> {
        self.run(RECORD_SESSION_USE, values![id, at]).await.map(drop)
    }

    /// Returns whose session it was, if there was one.
    pub async fn delete_session(&self, id: Uuid) -> Result<Option<CredentialName>, StoreFailure> {
        let name = self.run(DELETE_SESSION, values![id]).await?.column::<String>()?.pop();
        Ok(name.map(CredentialName::from_stored))
    }

    /// Ends all sessions and all links to sign in.
    pub async fn delete_all_sessions(&self) -> Result<(), StoreFailure> {
        let mut tx = self.begin().await?;
        tx.run("UPDATE sign_in_links SET hash = NULL", &[]).await?;
        tx.run("DELETE FROM sessions", &[]).await?;
        tx.commit().await
    }

    pub async fn record_change(&self, id: Uuid, at: Timestamp, by: &Actor, what: &str) -> Result<(), StoreFailure> {
        let name = by.name().map(CredentialName::as_str);
        self.run(INSERT_ACTIVITY, values![id, at, by.kind().as_str(), name, what]).await.map(drop)
    }

    /// Returns up to `limit` changes that the makers made, in the order in which they follow the start.
    pub async fn activity(&self, start: &PageStart<Uuid>, limit: usize) -> Result<Vec<RecordedChange>, StoreFailure> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let (statement, id) = match start {
            PageStart::Newest => (SELECT_OLDER_ACTIVITY, Uuid::max()),
            PageStart::OlderThan(id) => (SELECT_OLDER_ACTIVITY, *id),
            PageStart::NewerThan(id) => (SELECT_NEWER_ACTIVITY, *id),
        };
        let rows: Vec<ActivityRow> = self.run(statement, values![id, limit]).await?.all()?;
        rows.into_iter().map(ActivityRow::parse).collect()
    }

    /// Deletes links, sessions and activity that are older than they may be.
    pub async fn prune_desk(&self, now: Timestamp) -> Result<(), StoreFailure> {
        let links = now.before(SIGN_IN_MAIL_PERIOD);
        let times = [links, links, now.before(SESSION_LIFE), now.before(ACTIVITY_LIFE)];
        for (statement, at) in PRUNE.into_iter().zip(times) {
            self.run(statement, values![at]).await?;
        }
        Ok(())
    }
}

impl Transaction {
    async fn insert_sign_in_link(&mut self, link: &SignInLink<'_>) -> Result<(), StoreFailure> {
        let SignInLink { id, hash, name, browser, made } = link;
        let (browser, expires) = (browser.as_ref().map(Sha256::hex), made.after(SIGN_IN_LINK_LIFE));
        self.run(INSERT_LINK, values![*id, hash.hex(), name.as_str(), browser, expires]).await.map(drop)
    }
}

impl SessionRow {
    fn parse(self) -> Result<Session, StoreFailure> {
        Ok(Session {
            id: parse_id(&self.id)?,
            name: CredentialName::from_stored(self.name),
            started: self.started_at,
            last_used: self.used_at,
        })
    }
}

impl ActivityRow {
    fn parse(self) -> Result<RecordedChange, StoreFailure> {
        Ok(RecordedChange {
            id: parse_id(&self.id)?,
            at: self.at,
            by: ActorKind::parse(&self.via).ok_or_else(|| StoreFailure::invalid("who did something"))?,
            name: self.name.map(CredentialName::from_stored),
            what: self.what,
        })
    }
}
