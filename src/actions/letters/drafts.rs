//! Drafts of letters.

use uuid::Uuid;

use crate::actions::random::new_id;
use crate::domain::time::Timestamp;
use crate::store::{Store, StoreFailure};

/// Adds a draft, and returns its id.
pub async fn create_draft(store: &Store, markdown: &str, now: Timestamp) -> Result<Uuid, StoreFailure> {
    let id = new_id(now);
    store.add_draft(id, markdown, now).await?;
    Ok(id)
}
