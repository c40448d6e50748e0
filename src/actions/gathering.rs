//! What is counted and recorded nowhere else: calls to tools, and disk images that began to be sent.
//!
//! Gathered in memory and added to the counts every few seconds: a crash loses the last of them,
//! which is not worth a write for each.

use std::sync::{Arc, Mutex, PoisonError};

use crate::domain::calendar::Day;
use crate::domain::consent::Via;
use crate::domain::counts::{CountKey, Counted, Counts};
use crate::domain::time::Moment;
use crate::domain::version::Version;
use crate::store::{Store, StoreFailure};

/// Cheap to copy; the copies gather in one place.
#[derive(Clone, Debug, Default)]
pub struct Gathering(Arc<Mutex<Counts>>);

impl Gathering {
    pub fn tool_called(&self, tool: &'static str, at: Moment) {
        self.add(CountKey { day: Day::of(at), what: Counted::Tool, via: Via::Mcp.as_str(), name: tool.to_owned() });
    }

    pub fn image_sent(&self, version: &Version, at: Moment) {
        self.add(CountKey { day: Day::of(at), what: Counted::Image, via: "", name: version.to_string() });
    }

    /// Adds what was gathered to the counts.
    ///
    /// # Errors
    /// When the database does not answer: then it is kept for the next time.
    pub async fn store(&self, store: &Store) -> Result<(), StoreFailure> {
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
