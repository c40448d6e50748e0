//! Counts by period and by source.

use super::calendar::{Day, Period};
use super::counts::Totals;

/// Totals from `since` to `until`, both included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    pub by: Period,
    pub since: Day,
    pub until: Day,
    pub total: Totals,
    /// Every period with its first day, including those without events.
    pub periods: Vec<(Day, Totals)>,
    /// The most frequent sources first. An empty name stands for no source.
    pub sources: Vec<(String, Totals)>,
    /// By the interface that requests came through.
    pub via: Vec<(String, Totals)>,
    /// Calls by tool, the most frequent first.
    pub tools: Vec<(String, u64)>,
    /// Transfers of disk images by version, the most frequent first.
    pub images: Vec<(String, u64)>,
}
