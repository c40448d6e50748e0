//! Counts of events and of reads, without personal data.

mod counts;
mod reader;
mod reads;
mod update_check;
mod update_statistics;

pub use counts::{CountKey, CountedEvent, Counts, PeopleTotals, SourceCounts, Statistics, Totals, counted_source};
pub use reader::{Reader, ReaderKind};
pub use reads::{DailyReads, ReadTotals, Reading, ReadsByReader};
pub use update_check::UpdateCheck;
pub use update_statistics::UpdateStatistics;
