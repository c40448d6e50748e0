//! How the launch goes: what was counted, put together by period and by where it came from.

use super::calendar::{Day, Period};
use super::counts::Counted;

/// How often each thing happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub downloads: u64,
    pub new_people: u64,
    pub opt_ins: u64,
    pub joins: u64,
    pub messages: u64,
    pub unsubscribes: u64,
}

impl Totals {
    /// Calls and images are told apart by more than their number, and have no place here.
    pub const fn add(&mut self, what: Counted, times: u64) {
        let place = match what {
            Counted::Download => &mut self.downloads,
            Counted::Person => &mut self.new_people,
            Counted::OptIn => &mut self.opt_ins,
            Counted::Join => &mut self.joins,
            Counted::Message => &mut self.messages,
            Counted::Unsubscribe => &mut self.unsubscribes,
            Counted::Tool | Counted::Image => return,
        };
        *place += times;
    }

    /// Each with the name that programs know it by.
    #[must_use]
    pub const fn named(&self) -> [(&'static str, u64); 6] {
        [
            ("downloads", self.downloads),
            ("new_people", self.new_people),
            ("opt_ins", self.opt_ins),
            ("joins", self.joins),
            ("messages", self.messages),
            ("unsubscribes", self.unsubscribes),
        ]
    }
}

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
