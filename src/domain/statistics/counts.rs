//! Counts of events by day, and statistics by period and by source. They contain no personal data, so they remain when a
//! person is erased.

use std::collections::BTreeMap;

use serde::Serialize;

use super::reads::ReadsByReader;
use super::update_statistics::UpdateStatistics;
use crate::domain::parse::word_enum;
use crate::domain::signups::Via;
use crate::domain::text::Source;
use crate::domain::time::{Day, Period};

word_enum! {
    /// An event that is counted.
    #[derive(PartialOrd, Ord)]
    pub enum CountedEvent {
        Download = "download",
        /// The first download or signup of an address.
        NewPerson = "person",
        OptIn = "opt-in",
        Join = "join",
        Message = "message",
        Unsubscribe = "unsubscribe",
        /// A call of an MCP tool, by its name.
        ToolCall = "tool",
        /// The start of a disk image's transfer, by its version.
        ImageDownload = "image",
        /// A request of the appcast by Sparkle, by the version of the app.
        UpdateCheck = "update",
        /// An update check with a profile, by major version of macOS.
        UpdateMacos = "macos",
        /// An update check with a profile, by processor.
        UpdateProcessor = "processor",
    }
}

/// Identifies one count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CountKey {
    pub day: Day,
    pub what: CountedEvent,
    /// The interface that the event came through, or empty.
    pub via: &'static str,
    /// The tool, version, system or processor, or empty.
    pub name: String,
}

/// Event counts, in key order so that two instances that update the same rows cannot deadlock.
#[derive(Clone, Debug, Default)]
pub struct Counts(BTreeMap<CountKey, u64>);

impl Counts {
    /// Counts an event without a name.
    pub fn add_unnamed(&mut self, day: Day, what: CountedEvent, via: Option<Via>) {
        self.add(CountKey { day, what, via: via.map_or("", Via::as_str), name: String::new() });
    }

    pub fn add(&mut self, key: CountKey) {
        self.add_times(key, 1);
    }

    pub fn add_times(&mut self, key: CountKey, times: u64) {
        *self.0.entry(key).or_default() += times;
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&CountKey, u64)> {
        self.0.iter().map(|(key, count)| (key, *count))
    }

    /// Adds all counts of `other`.
    pub fn merge(&mut self, other: Self) {
        for (key, count) in other.0 {
            *self.0.entry(key).or_default() += count;
        }
    }
}

/// The number of events of each kind.
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
    /// Ignores what is counted by name only: tool calls, images and update checks.
    pub const fn add(&mut self, what: CountedEvent, count: u64) {
        let total = match what {
            CountedEvent::Download => &mut self.downloads,
            CountedEvent::NewPerson => &mut self.new_people,
            CountedEvent::OptIn => &mut self.opt_ins,
            CountedEvent::Join => &mut self.joins,
            CountedEvent::Message => &mut self.messages,
            CountedEvent::Unsubscribe => &mut self.unsubscribes,
            CountedEvent::ToolCall
            | CountedEvent::ImageDownload
            | CountedEvent::UpdateCheck
            | CountedEvent::UpdateMacos
            | CountedEvent::UpdateProcessor => return,
        };
        *total += count;
    }

    /// Subtracts what sources are counted by: downloads, people, opt-ins and joins.
    pub const fn without(self, part: Self) -> Self {
        Self {
            downloads: self.downloads.saturating_sub(part.downloads),
            new_people: self.new_people.saturating_sub(part.new_people),
            opt_ins: self.opt_ins.saturating_sub(part.opt_ins),
            joins: self.joins.saturating_sub(part.joins),
            ..self
        }
    }

    /// Each total with its name in JSON and its label in metrics. The columns of `stats` and of the dashboard
    /// are in this order.
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

/// The source that an event is counted by. One that contains an @ may be an email address, so the event is counted without a
/// source.
pub fn counted_source(source: Option<&Source>) -> &str {
    source.map(Source::as_str).filter(|source| !source.contains('@')).unwrap_or_default()
}

/// By day and source, sorted like [`Counts`].
pub type SourceCounts<'a> = BTreeMap<(Day, &'a str), Totals>;

/// How many people there are now. Those who are suppressed may be opted in, or may not be known otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PeopleTotals {
    pub people: u64,
    pub opted_in: u64,
    /// Their opt-in waits for its confirmation.
    pub pending: u64,
    pub suppressed: u64,
}

/// Totals from `since` to `until`, both included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    pub by: Period,
    pub since: Day,
    pub until: Day,
    pub total: Totals,
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
    pub updates: UpdateStatistics,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_may_be_an_address_is_counted_as_none() {
        let source = |text| Source::parse(text).unwrap();
        assert_eq!(counted_source(Some(&source("hn"))), "hn");
        assert_eq!(counted_source(Some(&source("ada@example.com"))), "");
        assert_eq!(counted_source(None), "");
    }
}
