//! Statistics of update checks: how a release spreads. [`UpdateCheck`](super::UpdateCheck) says what is counted.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::domain::releases::Version;

/// Update checks by version, and the profiles that came with some of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpdateStatistics {
    /// The highest first, pre-releases after all others, and last what was never published.
    pub versions: Vec<(String, u64)>,
    /// The checks in each period, in the order of the periods and of `versions`.
    pub by_period: Vec<Vec<u64>>,
    /// By major version, the most frequent first.
    pub macos: Vec<(String, u64)>,
    /// The most frequent first.
    pub processors: Vec<(String, u64)>,
}

impl UpdateStatistics {
    /// How many versions have a column of their own in a table.
    const COLUMNS: usize = 4;

    /// `periods` are the checks in each period by version.
    pub fn new(periods: &[BTreeMap<String, u64>], macos: Vec<(String, u64)>, processors: Vec<(String, u64)>) -> Self {
        let mut sums = BTreeMap::<&str, u64>::new();
        for (version, checks) in periods.iter().flatten() {
            *sums.entry(version).or_default() += checks;
        }
        let mut versions: Vec<_> = sums.into_iter().map(|(version, checks)| (version.to_owned(), checks)).collect();
        versions.sort_by_cached_key(|(version, _)| {
            let version = Version::parse(version).ok();
            (version.as_ref().is_none_or(Version::is_prerelease), Reverse(version))
        });
        let of_period = |period: &BTreeMap<String, u64>| {
            versions.iter().map(|(version, _)| period.get(version).copied().unwrap_or_default()).collect()
        };
        Self { by_period: periods.iter().map(of_period).collect(), versions, macos, processors }
    }

    /// The headings of a table: the first versions, and a last column for the others if there are more.
    pub fn columns(&self) -> Vec<&str> {
        let versions = self.versions.iter().take(Self::COLUMNS).map(|(version, _)| version.as_str());
        versions.chain((self.versions.len() > Self::COLUMNS).then_some("(others)")).collect()
    }

    /// The sum of these checks, which are in the order of `versions`, and the cell of each column.
    pub fn cells(checks: &[u64]) -> Vec<u64> {
        let (own, others) = checks.split_at(checks.len().min(Self::COLUMNS));
        let others = (!others.is_empty()).then(|| others.iter().sum());
        std::iter::once(checks.iter().sum()).chain(own.iter().copied()).chain(others).collect()
    }

    /// The cells of all periods together.
    pub fn total(&self) -> Vec<u64> {
        Self::cells(&self.versions.iter().map(|(_, checks)| *checks).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_versions_have_a_column_each_and_the_others_share_one() {
        let period = |counts: &[(&str, u64)]| counts.iter().map(|(version, n)| ((*version).to_owned(), *n)).collect();
        let first = period(&[("1.9.0", 5), ("other", 1), ("2.0.0-beta.1", 2)]);
        let few = UpdateStatistics::new(&[first], Vec::new(), Vec::new());
        assert_eq!(few.columns(), ["1.9.0", "2.0.0-beta.1", "other"]);
        assert_eq!(few.total(), [8, 5, 2, 1]);
        let periods = [
            period(&[("1.9.0", 5), ("other", 1), ("2.0.0-beta.1", 2)]),
            period(&[("1.10.0", 3), ("1.9.0", 4), ("1.8.0", 1), ("1.7.0", 1)]),
        ];
        let many = UpdateStatistics::new(&periods, Vec::new(), Vec::new());
        assert_eq!(many.columns(), ["1.10.0", "1.9.0", "1.8.0", "1.7.0", "(others)"]);
        assert_eq!(UpdateStatistics::cells(&many.by_period[0]), [8, 0, 5, 0, 0, 3]);
        assert_eq!(many.total(), [17, 3, 9, 1, 1, 3]);
    }
}
