//! Counts of events and of reads, without personal data.

mod counts;
mod reader;
mod reads;

pub use counts::{CountKey, CountedEvent, Counts, SourceCounts, Statistics, Totals, counted_source};
pub use reader::{Reader, ReaderKind};
pub use reads::{DailyReads, ReadTotals, Reading, ReadsByReader};
