//! Deletes contact messages, their outbox entries and their content hashes.

use serde_json::{Value, json};

use super::messages::content_hash;
use super::statement::{Statement, batch_statement};

/// Takes the other messages out of mails that may have arrived, so that they go in other mails: without a deleted message,
/// a repeated mail would have different content under the same Message-ID.
pub(super) const LEAVE_MAILS: Statement = batch_statement!(
    "UPDATE outbox SET mail = NULL WHERE state <> 'sent' AND mail IN \
     (SELECT o.mail FROM outbox o WHERE o.message IN (SELECT batch.id",
    (id text),
    "))"
);

/// Cascades to the outbox.
pub(super) const DELETE_MESSAGES: Statement = batch_statement!(
    "DELETE FROM messages WHERE id IN (SELECT batch.id",
    (id text),
    ") RETURNING id, address, email, name, body"
);

/// Only of the deleted messages: a message that arrives concurrently keeps its hash.
pub(super) const DELETE_CONTENT_HASHES: Statement = batch_statement!(
    "DELETE FROM message_digests WHERE (digest, message) IN (SELECT batch.digest, batch.id",
    (digest text, id text),
    ")"
);

/// A deleted row of `messages`: id, address, email, name, text.
pub(super) type DeletedMessage = (String, String, String, Option<String>, String);

/// Deletes the messages with these ids, and returns them. The same messages can then be sent again.
macro_rules! delete_messages {
    ($tx:ident, $sql:ident, $ids:expr) => {{
        use $crate::store::delete_messages::{
            DELETE_CONTENT_HASHES, DELETE_MESSAGES, DeletedMessage, LEAVE_MAILS, hashes_batch, ids_batch,
        };
        let batch = ids_batch($ids);
        sqlx::query($sql(LEAVE_MAILS)).bind(&batch).execute(&mut *$tx).await?;
        let deleted: Vec<DeletedMessage> =
            sqlx::query_as($sql(DELETE_MESSAGES)).bind(&batch).fetch_all(&mut *$tx).await?;
        sqlx::query($sql(DELETE_CONTENT_HASHES)).bind(hashes_batch(&deleted)).execute(&mut *$tx).await?;
        deleted
    }};
}

pub(super) use delete_messages;

/// The parameter of [`LEAVE_MAILS`] and [`DELETE_MESSAGES`].
pub(super) fn ids_batch(ids: impl IntoIterator<Item = String>) -> String {
    ids.into_iter().map(|id| json!({ "id": id })).collect::<Value>().to_string()
}

/// The parameter of [`DELETE_CONTENT_HASHES`].
pub(super) fn hashes_batch(messages: &[DeletedMessage]) -> String {
    let rows = messages.iter().map(|(id, address, _, name, text)| {
        let hash = content_hash(address, name.as_deref(), text);
        json!({ "digest": hash, "id": id })
    });
    rows.collect::<Value>().to_string()
}
