//! Counts of what was read, by day and reader. Nothing else of a request is kept.

use std::collections::BTreeMap;

use super::reader::{Reader, ReaderKind};
use crate::domain::time::Day;

/// What a request read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// A page as HTML.
    Page,
    /// A page as Markdown.
    Markdown,
    /// A file that tells programs about the site, such as `/llms.txt`.
    Briefing,
    /// The result of an MCP tool.
    Tool,
}

/// The number of reads of each kind, in the order of [`Reading`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadTotals(pub [u64; 4]);

impl ReadTotals {
    pub const fn add(&mut self, reading: Reading) {
        self.0[reading as usize] += 1;
    }

    pub fn merge(&mut self, other: Self) {
        for (total, more) in self.0.iter_mut().zip(other.0) {
            *total += more;
        }
    }

    pub fn sum(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Each total with its name in JSON. The columns of `stats` and of the dashboard are in this order.
    pub const fn named(&self) -> [(&'static str, u64); 4] {
        let [pages, markdown, briefings, tools] = self.0;
        [("pages", pages), ("markdown", markdown), ("briefings", briefings), ("tools", tools)]
    }
}

/// Reads by reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadsByReader(Box<[ReadTotals; Reader::COUNT]>);

impl Default for ReadsByReader {
    fn default() -> Self {
        Self(Box::new([ReadTotals::default(); Reader::COUNT]))
    }
}

impl ReadsByReader {
    pub fn add(&mut self, reader: Reader, reading: Reading) {
        self.0[reader.index()].add(reading);
    }

    pub fn add_totals(&mut self, reader: Reader, totals: ReadTotals) {
        self.0[reader.index()].merge(totals);
    }

    /// The readers that read something: those known by name first, the most frequent before the others; then people, and
    /// other programs.
    pub fn rows(&self) -> Vec<(Reader, ReadTotals)> {
        let mut rows: Vec<_> = self.iter().collect();
        let is_unnamed = |reader| reader >= Reader::PEOPLE;
        rows.sort_by_key(|(reader, totals)| {
            (is_unnamed(*reader), if is_unnamed(*reader) { 0 } else { u64::MAX - totals.sum() })
        });
        rows
    }

    /// The reads of all readers of this kind.
    pub fn sum_of(&self, kind: ReaderKind) -> u64 {
        self.iter().filter(|(reader, _)| reader.kind() == kind).map(|(_, totals)| totals.sum()).sum()
    }

    /// The readers that read something.
    pub fn iter(&self) -> impl Iterator<Item = (Reader, ReadTotals)> {
        Reader::all().map(|reader| (reader, self.0[reader.index()])).filter(|(_, totals)| totals.sum() > 0)
    }
}

/// Reads by day and reader.
#[derive(Clone, Debug, Default)]
pub struct DailyReads(BTreeMap<Day, ReadsByReader>);

impl DailyReads {
    pub fn add(&mut self, day: Day, reader: Reader, reading: Reading) {
        self.0.entry(day).or_default().add(reader, reading);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (Day, Reader, ReadTotals)> {
        self.0.iter().flat_map(|(day, reads)| reads.iter().map(|(reader, totals)| (*day, reader, totals)))
    }

    /// Adds all reads of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (day, reader, totals) in other.iter() {
            self.0.entry(day).or_default().add_totals(reader, totals);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_and_other_programs_come_last() {
        let mut reads = ReadsByReader::default();
        let [claude, gpt] = ["ClaudeBot", "GPTBot"].map(|name| Reader::of_user_agent(Some(name), false));
        for (reader, times) in [(Reader::OTHER_PROGRAMS, 9), (Reader::PEOPLE, 1), (gpt, 2), (claude, 3)] {
            for _ in 0..times {
                reads.add(reader, Reading::Page);
            }
        }
        let names: Vec<_> = reads.rows().iter().map(|(reader, _)| reader.name()).collect();
        assert_eq!(names, ["ClaudeBot", "GPTBot", "people", "other programs"]);
    }
}
