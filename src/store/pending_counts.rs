//! Counts of signups that are not in `counts` and `sources` yet.
//!
//! Every transaction that adds to a row of `counts` or `sources` locks it until its commit. So in PostgreSQL the instances,
//! and the batches of one instance, would commit one after another. A batch of signups inserts rows into `pending_counts`
//! instead, and [`Store::settle_counts`] adds them up now and then. Queries of counts include these rows. In SQLite,
//! which has one writer at a time, the table stays empty.

use super::{Store, StoreFailure};

/// The rows of `counts` and those that are pending, as a table.
macro_rules! all_counts {
    () => {
        "(SELECT day, kind, via, name, times FROM counts \
          UNION ALL SELECT day, 'download', via, '', downloads FROM pending_counts \
          UNION ALL SELECT day, 'person', via, '', people FROM pending_counts \
          UNION ALL SELECT day, 'opt-in', via, '', opt_ins FROM pending_counts \
          UNION ALL SELECT day, 'join', via, '', joins FROM pending_counts) AS all_counts"
    };
}

pub(super) use all_counts;

/// Most rows that are settled at once.
const MAX_SETTLED: i64 = 10_000;

/// Moves at most `$1` pending rows that no other instance is moving, and returns their number. A source that is NULL is one
/// too many of its day: its events are in the daily counts alone. Rows are added in key order, so that instances that add to
/// the same ones cannot deadlock.
const SETTLE_COUNTS: &str = "\
WITH settled AS (
    DELETE FROM pending_counts
    WHERE ctid = ANY (ARRAY (SELECT ctid FROM pending_counts LIMIT $1 FOR UPDATE SKIP LOCKED))
    RETURNING day, via, source, downloads, people, opt_ins, joins
), summed AS (
    SELECT day, via, source, SUM(downloads) AS downloads, SUM(people) AS people, SUM(opt_ins) AS opt_ins, SUM(joins) AS joins
    FROM settled GROUP BY day, via, source
), named AS (
    INSERT INTO sources (day, source, downloads, people, opt_ins, joins)
    SELECT day, source, SUM(downloads), SUM(people), SUM(opt_ins), SUM(joins)
    FROM summed WHERE source IS NOT NULL GROUP BY day, source ORDER BY day, source
    ON CONFLICT (day, source) DO UPDATE SET
        downloads = sources.downloads + excluded.downloads, people = sources.people + excluded.people,
        opt_ins = sources.opt_ins + excluded.opt_ins, joins = sources.joins + excluded.joins
), counted AS (
    INSERT INTO counts (day, kind, via, name, times)
    SELECT summed.day, event.kind, summed.via, '', SUM(event.times)
    FROM summed, LATERAL (VALUES ('download', summed.downloads), ('person', summed.people),
        ('opt-in', summed.opt_ins), ('join', summed.joins)) AS event (kind, times)
    WHERE event.times > 0 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (day, kind, via, name) DO UPDATE SET times = counts.times + excluded.times
)
SELECT COUNT(*) FROM settled";

impl Store {
    /// Adds pending counts to `counts` and `sources`.
    pub(super) async fn settle_counts(&self) -> Result<(), StoreFailure> {
        let Self::Postgres(pool) = self else { return Ok(()) };
        while sqlx::query_scalar::<_, i64>(SETTLE_COUNTS).bind(MAX_SETTLED).fetch_one(pool).await? == MAX_SETTLED {}
        Ok(())
    }
}
