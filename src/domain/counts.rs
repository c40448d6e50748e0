//! What is counted by day, and by what it is told apart. No count is about a person: counts stay when
//! one is erased.

use std::collections::BTreeMap;

use super::calendar::Day;
use super::consent::Via;
use super::text::Source;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counted {
    Download,
    /// An address that neither downloaded nor joined before.
    Person,
    OptIn,
    Join,
    Message,
    Unsubscribe,
    /// A call to a tool; the tool stands where others have their source.
    Tool,
    /// A disk image that began to be sent; its version stands where others have their source.
    Image,
}

impl Counted {
    pub const ALL: [Self; 8] = [
        Self::Download,
        Self::Person,
        Self::OptIn,
        Self::Join,
        Self::Message,
        Self::Unsubscribe,
        Self::Tool,
        Self::Image,
    ];

    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|what| what.as_str() == text)
    }

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Download => "download",
            Self::Person => "person",
            Self::OptIn => "opt-in",
            Self::Join => "join",
            Self::Message => "message",
            Self::Unsubscribe => "unsubscribe",
            Self::Tool => "tool",
            Self::Image => "image",
        }
    }
}

/// What is counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CountKey {
    pub day: Day,
    pub what: Counted,
    /// Empty where there is none, as is the source.
    pub via: &'static str,
    pub source: String,
}

/// How often what happened: always in one order, so that two instances that add to the same counts
/// do not wait for each other in a circle.
#[derive(Clone, Debug, Default)]
pub struct Counts(BTreeMap<CountKey, u64>);

impl Counts {
    /// Counts something that came through a face of the service, and perhaps said where from.
    pub fn add_from(&mut self, day: Day, what: Counted, via: Via, source: Option<&Source>) {
        let source = source.map(Source::as_str).filter(|source| !source.contains('@')).unwrap_or_default();
        self.add(CountKey { day, what, via: via.as_str(), source: source.to_owned() });
    }

    /// Counts something that comes from nowhere in particular.
    pub fn add_plain(&mut self, day: Day, what: Counted) {
        self.add(CountKey { day, what, via: "", source: String::new() });
    }

    pub fn add(&mut self, key: CountKey) {
        *self.0.entry(key).or_default() += 1;
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&CountKey, u64)> {
        self.0.iter().map(|(key, times)| (key, *times))
    }

    /// Takes back what could not be stored, to be stored with the rest later.
    pub fn merge(&mut self, other: Self) {
        for (key, times) in other.0 {
            *self.0.entry(key).or_default() += times;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_may_be_an_address_is_counted_without_it() {
        let mut counts = Counts::default();
        for source in ["hn", "ada@example.com"] {
            let source = Source::parse(source).unwrap();
            counts.add_from(Day::from_number(1), Counted::Download, Via::Api, Some(&source));
        }
        counts.add_from(Day::from_number(1), Counted::Download, Via::Api, None);
        let sources: Vec<_> = counts.iter().map(|(key, times)| (key.source.as_str(), times)).collect();
        assert_eq!(sources, [("", 2), ("hn", 1)]);
    }
}
