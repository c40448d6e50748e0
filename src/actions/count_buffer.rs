//! Counts of events that are stored nowhere else: tool calls, and disk images that were sent.
//!
//! They are buffered in memory and flushed every few seconds. A crash loses the last ones, which is not worth a write
//! for each event.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::domain::calendar::Day;
use crate::domain::consent::Via;
use crate::domain::counts::{CountKey, CountedEvent, Counts};
use crate::domain::time::Timestamp;
use crate::domain::version::Version;
use crate::store::{Store, StoreFailure};

/// Cheap to clone; clones share one buffer.
#[derive(Clone, Debug, Default)]
pub struct CountBuffer(Arc<Mutex<Counts>>);

impl CountBuffer {
    pub fn tool_called(&self, tool: &'static str, at: Timestamp) {
        self.counts().add(CountKey {
            day: Day::of(at),
            what: CountedEvent::ToolCall,
            via: Via::Mcp.as_str(),
            name: tool.to_owned(),
        });
    }

    pub fn image_sent(&self, version: &Version, at: Timestamp) {
        self.counts().add(CountKey {
            day: Day::of(at),
            what: CountedEvent::ImageDownload,
            via: "",
            name: version.to_string(),
        });
    }

    /// Adds the buffered counts to the database.
    ///
    /// # Errors
    /// When the database is unavailable: the counts stay in the buffer.
    pub async fn flush(&self, store: &Store) -> Result<(), StoreFailure> {
        let counts = std::mem::take(&mut *self.counts());
        if counts.is_empty() {
            return Ok(());
        }
        let result = store.add_counts(&counts).await;
        if result.is_err() {
            self.counts().merge(counts);
        }
        result
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
