//! Daily counts of reads, by reader.

use serde_json::{Value, json};

use super::statement::{Statement, batch_statement, in_transaction, on_pool};
use super::{Store, StoreFailure};
use crate::domain::calendar::Day;
use crate::domain::reader::Reader;
use crate::domain::reads::{DailyReads, ReadTotals};

const ADD_READS: Statement = batch_statement!(
    "INSERT INTO reads (day, reader, pages, markdown, briefings, tools) \
     SELECT batch.day, batch.reader, batch.pages, batch.markdown, batch.briefings, batch.tools",
    (day bigint, reader text, pages bigint, markdown bigint, briefings bigint, tools bigint),
    "ON CONFLICT (day, reader) DO UPDATE SET pages = reads.pages + excluded.pages, \
         markdown = reads.markdown + excluded.markdown, briefings = reads.briefings + excluded.briefings, \
         tools = reads.tools + excluded.tools"
);

const SELECT_READS: &str =
    "SELECT day, reader, pages, markdown, briefings, tools FROM reads WHERE day >= $1 ORDER BY day, reader";

impl Store {
    pub async fn add_reads(&self, reads: &DailyReads) -> Result<(), StoreFailure> {
        let batch = reads_batch(reads);
        in_transaction!(self, |tx, sql| {
            sqlx::query(sql(ADD_READS)).bind(&batch).execute(&mut *tx).await?;
        });
        Ok(())
    }

    pub async fn reads_by_day(&self, since: Day) -> Result<Vec<(Day, Reader, ReadTotals)>, StoreFailure> {
        type Row = (i64, String, i64, i64, i64, i64);
        let rows: Vec<Row> =
            on_pool!(self, |pool| sqlx::query_as(SELECT_READS).bind(since.number()).fetch_all(pool).await?);
        let read = |(day, reader, pages, markdown, briefings, tools): Row| {
            let [pages, markdown, briefings, tools] =
                [pages, markdown, briefings, tools].map(|times| u64::try_from(times).unwrap_or_default());
            let totals = ReadTotals { pages, markdown, briefings, tools };
            (Day::from_number(day), Reader::of_stored_name(&reader), totals)
        };
        Ok(rows.into_iter().map(read).collect())
    }
}

/// Sorted by name, so that instances of different versions, too, lock rows in the same order.
fn reads_batch(reads: &DailyReads) -> String {
    let mut rows: Vec<_> = reads.iter().collect();
    rows.sort_by_key(|(day, reader, _)| (*day, reader.name()));
    let rows = rows.into_iter().map(|(day, reader, totals)| {
        let mut row = json!({ "day": day.number(), "reader": reader.name() });
        for (name, times) in totals.named() {
            row[name] = times.into();
        }
        row
    });
    rows.collect::<Value>().to_string()
}
