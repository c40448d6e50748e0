//! Daily counts of reads, by reader.

use crate::domain::statistics::{DailyReads, ReadTotals, Reader};
use crate::domain::time::Day;
use crate::store::connection::{BatchStatement, Store, StoreFailure, count, values};

const ADD_READS: BatchStatement = BatchStatement::new(
    "day bigint, reader text, pages bigint, markdown bigint, briefings bigint, tools bigint",
    "INSERT INTO reads (day, reader, pages, markdown, briefings, tools) SELECT * FROM batch WHERE true \
     ON CONFLICT (day, reader) DO UPDATE SET pages = reads.pages + excluded.pages, \
         markdown = reads.markdown + excluded.markdown, briefings = reads.briefings + excluded.briefings, \
         tools = reads.tools + excluded.tools",
);

const SELECT_READS: &str =
    "SELECT day, reader, pages, markdown, briefings, tools FROM reads WHERE day >= $1 ORDER BY day, reader";

impl Store {
    /// The rows are sorted by name, so that instances of different versions, too, lock them in the same order.
    pub async fn add_reads(&self, reads: &DailyReads) -> Result<(), StoreFailure> {
        let mut rows: Vec<_> = reads.iter().collect();
        rows.sort_by_key(|(day, reader, _)| (*day, reader.name()));
        let row = |(day, reader, totals): (Day, Reader, ReadTotals)| {
            let ReadTotals([pages, markdown, briefings, tools]) = totals;
            [day.number().into(), reader.name().into(), pages.into(), markdown.into(), briefings.into(), tools.into()]
        };
        self.run_batch(ADD_READS, rows.into_iter().map(row).collect()).await.map(drop)
    }

    pub async fn reads_by_day(&self, since: Day) -> Result<Vec<(Day, Reader, ReadTotals)>, StoreFailure> {
        type Row = (i64, String, i64, i64, i64, i64);
        let rows: Vec<Row> = self.run(SELECT_READS, values![since.number()]).await?.all()?;
        let read = |(day, reader, pages, markdown, briefings, tools): Row| {
            let totals = ReadTotals([pages, markdown, briefings, tools].map(count));
            (Day::from_number(day), Reader::of_stored_name(&reader), totals)
        };
        Ok(rows.into_iter().map(read).collect())
    }
}
