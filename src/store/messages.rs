//! Stores contact messages with their outbox entries. The same message from the same sender within a day is stored
//! once.

use std::collections::BTreeMap;

use super::Store;
use super::counts::{ADD_COUNTS, counts_batch};
use super::statement::{Statement, batch_statement, in_transaction};
use super::writer::Record;
use crate::domain::calendar::Day;
use crate::domain::contact::{ContactMessage, ReceivedMessage};
use crate::domain::counts::{CountedEvent, Counts};
use crate::domain::limits;
use crate::domain::sha256::Sha256;
use crate::domain::text::SenderName;
use serde_json::{Value, json};

/// Returns the hashes of messages that are no duplicates. An existing hash is claimed again if it is older than `$2`
/// milliseconds, or if this same write is being repeated. The upsert is atomic, so two instances that
/// receive the same message at once store it once.
const CLAIM_CONTENT_HASHES: Statement = batch_statement!(
    "INSERT INTO message_digests (digest, message, at) SELECT batch.digest, batch.id, batch.at",
    (digest text, id text, at bigint),
    "ON CONFLICT (digest) DO UPDATE SET message = excluded.message, at = excluded.at \
         WHERE message_digests.at <= excluded.at - $2 OR message_digests.message = excluded.message \
     RETURNING digest"
);

const INSERT_MESSAGES: Statement = batch_statement!(
    "INSERT INTO messages (id, address, email, name, body, at) \
     SELECT batch.id, batch.address, batch.email, batch.name, batch.body, batch.at",
    (id text, address text, email text, name text, body text, at bigint),
    "ON CONFLICT (id) DO NOTHING"
);

const ENQUEUE_MESSAGES: Statement = batch_statement!(
    "INSERT INTO outbox (message, state, at, tries) SELECT batch.id, 'waiting', batch.at, 0",
    (id text, at bigint),
    "ON CONFLICT (message) DO NOTHING"
);

impl Record for ReceivedMessage {
    type Output = ();
    type Memory = ();

    async fn insert(store: &Store, (): &mut (), messages: &[Self]) -> Result<Vec<()>, sqlx::Error> {
        let mut by_content_hash = BTreeMap::new();
        for message in messages {
            let ContactMessage { email, name, text } = &message.contact;
            let hash = content_hash(email.key(), name.as_ref().map(SenderName::as_str), text.as_str());
            by_content_hash.entry(hash).or_insert(message);
        }
        let hashes = hashes_batch(&by_content_hash);
        let window = i64::try_from(limits::DUPLICATE_MESSAGE_WINDOW.as_millis()).unwrap_or(i64::MAX);

        in_transaction!(store, |tx, sql| {
            let new: Vec<(String,)> =
                sqlx::query_as(sql(CLAIM_CONTENT_HASHES)).bind(&hashes).bind(window).fetch_all(&mut *tx).await?;
            if !new.is_empty() {
                let messages = messages_batch(&by_content_hash, &new);
                let inserted =
                    sqlx::query(sql(INSERT_MESSAGES)).bind(&messages).execute(&mut *tx).await?.rows_affected();
                sqlx::query(sql(ENQUEUE_MESSAGES)).bind(&messages).execute(&mut *tx).await?;
                // A repeated write inserts nothing and must not be counted again.
                if inserted > 0 {
                    let counts = counts_batch(&count(&by_content_hash, &new));
                    sqlx::query(sql(ADD_COUNTS)).bind(&counts).execute(&mut *tx).await?;
                }
            }
        });
        Ok(vec![(); messages.len()])
    }
}

/// A hash of sender, name and text, as they are stored. None of them contains a zero byte, so it is an unambiguous
/// separator.
pub(super) fn content_hash(address: &str, name: Option<&str>, text: &str) -> String {
    let name = name.map_or_else(String::new, |name| format!("{name}\0"));
    Sha256::of(format!("{address}\0{name}\0{text}").as_bytes()).hex()
}

fn hashes_batch(by_content_hash: &BTreeMap<String, &ReceivedMessage>) -> String {
    let rows = by_content_hash
        .iter()
        .map(|(hash, record)| json!({ "digest": hash, "id": record.id, "at": record.at.unix_millis() }));
    rows.collect::<Value>().to_string()
}

fn messages_batch(by_content_hash: &BTreeMap<String, &ReceivedMessage>, new: &[(String,)]) -> String {
    let rows = new.iter().filter_map(|(hash,)| by_content_hash.get(hash)).map(|record| {
        json!({
            "id": record.id,
            "address": record.contact.email.key(),
            "email": record.contact.email.as_typed(),
            "name": record.contact.name.as_ref().map(SenderName::as_str),
            "body": record.contact.text.as_str(),
            "at": record.at.unix_millis(),
        })
    });
    rows.collect::<Value>().to_string()
}

fn count(by_content_hash: &BTreeMap<String, &ReceivedMessage>, new: &[(String,)]) -> Counts {
    let mut counts = Counts::default();
    for message in new.iter().filter_map(|(hash,)| by_content_hash.get(hash)) {
        counts.add_unnamed(Day::of(message.at), CountedEvent::Message, None);
    }
    counts
}
