//! Statistics, and counts that are collected in memory.

mod count_buffer;
pub mod report;
mod summary;

pub use count_buffer::CountBuffer;
pub use report::{StatisticsRange, statistics};
pub use summary::{CachedSummary, OpsSummary, ops_summary};
