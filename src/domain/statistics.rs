//! How the launch goes: what was counted, put together by period and by where it came from.

use super::calendar::{Day, Period};
use super::counts::Totals;

/// What happened from one day to another, both included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    pub by: Period,
    pub since: Day,
    pub until: Day,
    pub total: Totals,
    /// Every period, also those in which nothing happened, by its first day.
    pub periods: Vec<(Day, Totals)>,
    /// The sources that most came from, those first. Empty: none was given.
    pub sources: Vec<(String, Totals)>,
    /// By the face of the service that requests came through.
    pub via: Vec<(String, Totals)>,
    /// Calls by tool, and images sent by version: the most first.
    pub tools: Vec<(String, u64)>,
    pub images: Vec<(String, u64)>,
}
