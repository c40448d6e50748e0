//! What a bucket with backups holds, told by the names of its objects alone, because the service cannot read its own backups:
//!
//! - `2026-11-15/porchlight.db.000000000000-268435456.SHA256.age`: a piece of the database of that day: where it begins in the
//!   file, its length, and the SHA-256 of the object;
//! - `2026-11-15/manifest.json.000000000000-4096.SHA256.age`;
//! - `images/ID.000000000000-48213504.SHA256.age`: a piece of a disk image, which backups share. The id is made of its SHA-256 and
//!   of the public key, so that another key has images of its own;
//! - `2026-11-15/contents`: the keys of all objects of the backup, in their order. It is written last: without it there is no
//!   backup.

use std::collections::BTreeSet;

use age::x25519::Recipient;

use crate::bucket::Object;
use crate::domain::sha256::Sha256;
use crate::domain::time::{Day, Period};

/// How many backups are kept: the newest ones, and of the older ones the newest of each week.
const DAILY: usize = 7;
const WEEKLY: usize = 4;

/// The objects in the bucket, by their keys, with their lengths.
#[derive(Debug)]
pub(super) struct Objects(pub Vec<(String, u64)>);

impl Objects {
    /// The days of which there is a backup, the newest first.
    pub fn backups(&self) -> Vec<Day> {
        let days = self.0.iter().filter_map(|(key, _)| day_of(key).filter(|day| *key == contents_key(*day)));
        days.collect::<BTreeSet<_>>().into_iter().rev().collect()
    }

    /// The object with this key. For a piece of an image, whose key may lack the SHA-256, any object: all are the same image.
    pub fn find(&self, key: &str) -> Option<Object> {
        let wanted = identity(key);
        let (key, length) = self.0.iter().find(|(key, _)| identity(key) == wanted)?;
        Some(Object::new(key.clone(), *length, sha256_of(key)?))
    }

    /// The keys of objects that no backup of the days needs, in the order in which they can be deleted: first what makes a backup
    /// one. Newer ones may belong to a backup that is being made, and those of the future to a clock that is wrong.
    pub fn unneeded(&self, kept: &BTreeSet<Day>, contents: &BTreeSet<String>, today: Day) -> Vec<&str> {
        let needed: BTreeSet<_> = contents.iter().map(|key| identity(key)).collect();
        let is_unneeded = |key: &str| match day_of(key) {
            Some(day) if key == contents_key(day) => day < today.before(1) && !kept.contains(&day),
            Some(day) => day < today.before(1) && !needed.contains(key),
            None => key.starts_with(IMAGES) && sha256_of(key).is_some() && !needed.contains(identity(key)),
        };
        let mut keys: Vec<_> = self.0.iter().map(|(key, _)| key.as_str()).filter(|key| is_unneeded(key)).collect();
        keys.sort_by_key(|key| sha256_of(key).is_some());
        keys
    }
}

const IMAGES: &str = "images/";

pub(super) fn contents_key(day: Day) -> String {
    format!("{}/contents", day.date())
}

/// The beginning of the keys of the pieces of an image.
pub(super) fn image_name(image: Sha256, recipient: &Recipient) -> String {
    let id = Sha256::of(format!("{recipient} {}", image.hex()).as_bytes());
    format!("{IMAGES}{}", id.hex())
}

/// The beginning of the key of a piece of a file.
pub(super) fn piece_name(name: &str, first: u64, length: u64) -> String {
    format!("{name}.{first:012}-{length}")
}

pub(super) fn piece_key(piece: &str, sha256: Sha256) -> String {
    format!("{piece}.{}.age", sha256.hex())
}

/// Where the pieces of a file begin, and their lengths.
pub(super) fn pieces(length: u64, piece: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..length.div_ceil(piece).max(1)).map(move |n| (n * piece, piece.min(length - n * piece)))
}

/// The days whose backups are kept, of those that there are, the newest first. Those of the future are kept, and do not count.
pub(super) fn kept(backups: &[Day], today: Day) -> BTreeSet<Day> {
    let (future, past): (Vec<_>, Vec<_>) = backups.iter().partition(|day| **day > today.before(-1));
    let (daily, older) = past.split_at(past.len().min(DAILY));
    let mut weekly = older.to_vec();
    weekly.dedup_by_key(|day| Period::Week.start(*day));
    future.into_iter().chain(daily.iter().copied()).chain(weekly.into_iter().take(WEEKLY)).collect()
}

fn day_of(key: &str) -> Option<Day> {
    let (day, _) = key.split_once('/')?;
    parse_day(day)
}

/// Parses the name of a backup.
pub fn parse_day(name: &str) -> Option<Day> {
    Day::parse(name).ok().filter(|day| day.date() == name)
}

fn sha256_of(key: &str) -> Option<Sha256> {
    let (_, sha256) = key.strip_suffix(".age")?.rsplit_once('.')?;
    Sha256::from_hex(sha256)
}

/// What tells an object from others: its key, of a piece of an image without the SHA-256 of the object.
fn identity(key: &str) -> &str {
    let piece = key.strip_suffix(".age").and_then(|key| key.rsplit_once('.'));
    piece.filter(|_| key.starts_with(IMAGES)).map_or(key, |(piece, _)| piece)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Day {
        parse_day(text).unwrap()
    }

    #[test]
    fn seven_daily_and_four_weekly_backups_are_kept_whatever_days_are_missing() {
        let mut backups: Vec<Day> = Vec::new();
        for number in day("2026-06-01").number()..=day("2026-11-15").number() {
            let today = Day::from_number(number);
            backups.insert(0, today);
            let kept = kept(&backups, today);
            backups.retain(|day| kept.contains(day));
        }
        let names: Vec<_> = backups.iter().map(|day| day.date()).collect();
        let daily = (9..=15).rev().map(|day| format!("2026-11-{day:02}"));
        let weekly = ["2026-11-08", "2026-11-01", "2026-10-25", "2026-10-18"].map(ToOwned::to_owned);
        assert_eq!(names, daily.chain(weekly).collect::<Vec<_>>());
        assert_eq!(kept(&backups, day("2027-03-01")).len(), 11, "time alone deletes nothing");
        assert_eq!(kept(&backups, day("2026-01-01")).len(), 11, "nor does a clock that is late");
    }

    #[test]
    fn a_file_is_cut_into_pieces_without_gaps() {
        for (length, expected) in [
            (0, vec![(0, 0)]),
            (10, vec![(0, 10)]),
            (20, vec![(0, 10), (10, 10)]),
            (21, vec![(0, 10), (10, 10), (20, 1)]),
        ] {
            assert_eq!(pieces(length, 10).collect::<Vec<_>>(), expected);
        }
    }
}
