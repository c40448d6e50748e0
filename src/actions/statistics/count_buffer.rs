//! Counts of events that are stored nowhere else: reads, tool calls, and disk images that were sent.
//!
//! They are buffered in memory and flushed every few seconds. A crash loses the last ones, which is not worth a write
//! for each event.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::domain::releases::Version;
use crate::domain::signups::Via;
use crate::domain::statistics::{CountKey, CountedEvent, Counts, DailyReads, Reader, Reading};
use crate::domain::time::{Day, Timestamp};
use crate::store::{Store, StoreFailure};

/// Cheap to clone; clones share one buffer.
#[derive(Clone, Debug, Default)]
pub struct CountBuffer(Arc<Mutex<Buffered>>);

#[derive(Debug, Default)]
struct Buffered {
    counts: Counts,
    reads: DailyReads,
}

impl CountBuffer {
    pub fn read(&self, reader: Reader, reading: Reading, at: Timestamp) {
        self.buffered().reads.add(Day::of(at), reader, reading);
    }

    pub fn tool_called(&self, tool: &'static str, reader: Reader, at: Timestamp) {
        let key =
            CountKey { day: Day::of(at), what: CountedEvent::ToolCall, via: Via::Mcp.as_str(), name: tool.to_owned() };
        let mut buffered = self.buffered();
        buffered.reads.add(key.day, reader, Reading::Tool);
        buffered.counts.add(key);
    }

    pub fn image_sent(&self, version: &Version, at: Timestamp) {
        self.buffered().counts.add(CountKey {
            day: Day::of(at),
            what: CountedEvent::ImageDownload,
            via: "",
            name: version.to_string(),
        });
    }

    /// Adds the buffered counts to the database.
    pub async fn flush(&self, store: &Store) -> Result<(), StoreFailure> {
        let Buffered { counts, reads } = std::mem::take(&mut *self.buffered());
        if !counts.is_empty()
            && let Err(failure) = store.add_counts(&counts).await
        {
            let mut buffered = self.buffered();
            buffered.counts.merge(counts);
            buffered.reads.merge(&reads);
            return Err(failure);
        }
        if !reads.is_empty()
            && let Err(failure) = store.add_reads(&reads).await
        {
            self.buffered().reads.merge(&reads);
            return Err(failure);
        }
        Ok(())
    }

    fn buffered(&self) -> MutexGuard<'_, Buffered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
