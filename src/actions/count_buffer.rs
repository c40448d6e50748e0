//! What is counted and recorded nowhere else: calls to tools, and disk images that began to be sent.
//!
//! Gathered in memory and added to the counts every few seconds: a crash loses the last of them,
//! which is not worth a write for each.

use std::sync::{Arc, Mutex, PoisonError};

use crate::domain::calendar::Day;
use crate::domain::consent::Via;
use crate::domain::counts::{CountKey, CountedEvent, Counts};
use crate::domain::time::Timestamp;
use crate::domain::version::Version;
use crate::store::{Store, StoreFailure};

/// Cheap to copy; the copies gather in one place.
#[derive(Clone, Debug, Default)]
pub struct CountBuffer(Arc<Mutex<Counts>>);

impl CountBuffer {
    pub fn tool_called(&self, tool: &'static str, at: Timestamp) {
        self.add(CountKey {
            day: Day::of(at),
            what: CountedEvent::Tool,
            via: Via::Mcp.as_str(),
            name: tool.to_owned(),
        });
    }

    pub fn image_sent(&self, version: &Version, at: Timestamp) {
        self.add(CountKey { day: Day::of(at), what: CountedEvent::Image, via: "", name: version.to_string() });
    }

    /// Adds what was gathered to the counts.
    ///
    /// # Errors
    /// When the database does not answer: then it is kept for the next time.
    pub async fn flush(&self, store: &Store) -> Result<(), StoreFailure> {
        let gathered = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        if gathered.is_empty() {
            return Ok(());
        }
        let outcome = store.add_counts(&gathered).await;
        if outcome.is_err() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).merge(gathered);
        }
        outcome
    }

    fn add(&self, key: CountKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(key);
    }
}
