//! The counts by day. Whoever records something adds to them last in the same transaction: they are
//! as right as what they count, and others wait for their rows for the shortest time.

use serde_json::{Value, json};

use super::statement::{Statement, over_batch};
use crate::domain::counts::Counts;

pub(super) const ADD_COUNTS: Statement = over_batch!(
    "INSERT INTO counts (day, kind, via, source, times) \
     SELECT batch.day, batch.kind, batch.via, batch.source, batch.times",
    (day bigint, kind text, via text, source text, times bigint),
    "ON CONFLICT (day, kind, via, source) DO UPDATE SET times = counts.times + excluded.times"
);

pub(super) fn counts_batch(counts: &Counts) -> String {
    let rows = counts.iter().map(|(key, times)| {
        json!({
            "day": key.day.number(),
            "kind": key.what.as_str(),
            "via": key.via,
            "source": key.source,
            "times": times,
        })
    });
    rows.collect::<Value>().to_string()
}
