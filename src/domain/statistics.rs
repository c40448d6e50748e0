//! Counts by period and by source.

use super::calendar::{Day, Period};
use super::counts::Totals;
use super::reads::ReadsByReader;

/// Totals from `since` to `until`, both included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    pub by: Period,
    pub since: Day,
    pub until: Day,
    pub total: Totals,
    /// Opt-ins that wait for their confirmation now. They are not in any total.
    pub pending_opt_ins: u64,
    /// Every period with its first day, including those without events.
    pub periods: Vec<(Day, Totals)>,
    /// Who read, in all.
    pub readers: ReadsByReader,
    /// Who read in each period, in the order of `periods`.
    pub readers_by_period: Vec<ReadsByReader>,
    /// The most frequent sources first. An empty name stands for no source.
    pub sources: Vec<(String, Totals)>,
    /// By the interface that requests came through.
    pub via: Vec<(String, Totals)>,
    /// Calls by tool, the most frequent first.
    pub tools: Vec<(String, u64)>,
    /// Transfers of disk images by version, the most frequent first.
    pub images: Vec<(String, u64)>,
}

impl Statistics {
    /// The totals of all sources but the first `listed`: less frequent ones, and those beyond the number that a day admits.
    /// Returns `None` if there are none. With it, the rows of the sources add up to the total.
    pub fn other_sources(&self, listed: usize) -> Option<Totals> {
        let mut rest = Totals { messages: 0, unsubscribes: 0, ..self.total };
        for (_, totals) in self.sources.iter().take(listed) {
            rest = rest.without(*totals);
        }
        (rest != Totals::default()).then_some(rest)
    }
}
