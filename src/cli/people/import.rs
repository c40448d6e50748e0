//! `porchlight people import`: says what is in the export of another tool before it writes, and imports in batches.

use std::path::PathBuf;

use clap::Args;
use tokio::time::Instant;

use super::csv_file::{Problems, Rows, unreadable};
use super::list::BATCH_SIZE;
use crate::actions::import_people;
use crate::cli::activity::record;
use crate::cli::failure::{Failure, OrFail};
use crate::cli::terminal::{confirm, eprint_line, exit_on_interrupt};
use crate::clock::Clock;
use crate::domain::desk::Change;
use crate::domain::people::Person;
use crate::domain::text::{plural_form, quantity};
use crate::domain::time::Timestamp;
use crate::store::{Imported, Store};

pub(super) const IMPORT_EXAMPLES: &str = "\
Examples:
  porchlight people import people.csv --all-or-nothing
  porchlight people import members.ghost.csv --dry-run";

/// Writes a batch early once it holds this many downloads, because each of them becomes a row.
const MAX_BATCH_DOWNLOADS: u64 = 10_000;

const FIX: &str = "Fix the file and run the command again.";
const IMPORT_AGAIN: &str = "People who were already imported are not changed.";

#[derive(Args, Debug)]
pub(in crate::cli) struct ImportArguments {
    /// CSV file in UTF-8; - reads standard input
    file: PathBuf,
    /// Import nothing if any row is invalid
    #[arg(long)]
    all_or_nothing: bool,
    /// Say what is in the file, and import nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask before the export of another tool is imported
    #[arg(long)]
    yes: bool,
}

/// What the rows of a file say.
#[derive(Debug, Default)]
struct Summary {
    opted_in: u64,
    suppressed: u64,
    others: u64,
    invalid: Problems,
}

impl Summary {
    fn add(&mut self, person: &Person) {
        let number = match (&person.opt_in, person.suppressed) {
            (_, Some(_)) => &mut self.suppressed,
            (Some(_), None) => &mut self.opted_in,
            (None, None) => &mut self.others,
        };
        *number += 1;
    }

    const fn valid(&self) -> u64 {
        self.opted_in + self.suppressed + self.others
    }

    fn of_invalid(&self) -> String {
        format!("{} of {} rows", self.invalid.rows, self.valid() + self.invalid.rows)
    }

    /// The sentence about invalid rows, and what follows from them.
    fn refusal(&self, so: &str) -> Failure {
        let are = plural_form(self.invalid.rows, "is", "are");
        Failure::new(format!("{} {are} invalid{so} nothing was imported. {FIX}", self.of_invalid()))
    }

    /// Reads the whole file, and prints what is in it.
    fn of_file(rows: &mut Rows) -> Result<Self, Failure> {
        let mut summary = Self::default();
        while let Some(row) = rows.next_row()? {
            match row {
                Ok(person) => summary.add(&person),
                Err(row) => summary.invalid.add(row),
            }
        }
        let Self { opted_in, suppressed, others, invalid } = &summary;
        let whose = rows.tool().map_or_else(
            || "A list in the format of this service".to_owned(),
            |tool| format!("An export of {}", tool.name),
        );
        let total = quantity(summary.valid() + invalid.rows, "row", "rows");
        let invalid_rows = if invalid.rows > 0 { format!(", {} invalid", invalid.rows) } else { String::new() };
        eprint_line(&format!(
            "{whose}, {total}: {opted_in} opted in, {suppressed} suppressed, {others} neither{invalid_rows}."
        ));
        print_columns(rows);
        summary.invalid.print();
        rows.repeated.print();
        Ok(summary)
    }
}

fn print_columns(rows: &Rows) {
    let unknown: Vec<_> = rows.unknown_columns().collect();
    let Some(tool) = rows.tool() else {
        return unknown.iter().for_each(|column| eprint_line(&format!("The unknown column {column:?} is ignored.")));
    };
    let dates: Vec<_> = tool.opted_in_at.iter().map(|column| column.to_uppercase()).collect();
    let (name, dates) = (tool.name, dates.join(", else "));
    eprint_line(&format!(
        "The consent has the time in {dates}, and “{name}” as its source. Nobody without that time is opted in."
    ));
    if !unknown.is_empty() {
        eprint_line(&format!("These columns are not imported: {}.", unknown.join(", ")));
    }
    if !tool.caution.is_empty() {
        eprint_line(tool.caution);
    }
}

impl ImportArguments {
    /// Says what is in the file, if nothing more is asked for. That needs no database.
    pub(super) fn dry_run(&self) -> Option<Result<(), Failure>> {
        self.dry_run.then(|| {
            let summary = Summary::of_file(&mut Rows::open(&self.file, Clock::System.now())?)?;
            if summary.invalid.rows > 0 {
                return Err(summary.refusal(";"));
            }
            eprint_line("Nothing was imported.");
            Ok(())
        })
    }
}

/// Imports the file in batches, one transaction each. Importing the same file again continues after a failure. With
/// `all_or_nothing` the whole file is one batch, which is not imported if a row is invalid. The export of another tool is read
/// twice: first to say what is in it.
pub(super) async fn import(store: &Store, arguments: ImportArguments) -> Result<(), Failure> {
    let ImportArguments { file, all_or_nothing, yes, .. } = arguments;
    let now = Clock::System.now();
    let mut rows = Rows::open(&file, now)?;
    if rows.tool().is_none() {
        print_columns(&rows);
    } else {
        if !file.is_file() {
            return Err(Failure::new(unreadable(
                &file,
                "the export of another tool is read twice, so it has to be a file",
            )));
        }
        let summary = Summary::of_file(&mut rows)?;
        if all_or_nothing && summary.invalid.rows > 0 {
            return Err(summary.refusal(", so"));
        }
        confirm("Import these people?", yes, "Nothing was imported.")?;
        rows = Rows::open(&file, now)?;
    }
    exit_on_interrupt(if all_or_nothing {
        "Interrupted: nothing was imported.".to_owned()
    } else {
        format!("Interrupted. Run the command again. {IMPORT_AGAIN}")
    })?;
    let mut imported = Imported::default();
    let result = import_rows(store, &mut rows, &mut imported, all_or_nothing, now).await;
    let Imported { added, suppressed } = imported;
    // What was imported before a failure stays.
    if added + suppressed > 0 {
        record(store, Change::ImportedPeople { added, suppressed }).await;
    }
    result
}

async fn import_rows(
    store: &Store,
    rows: &mut Rows,
    total: &mut Imported,
    all_or_nothing: bool,
    now: Timestamp,
) -> Result<(), Failure> {
    let mut summary = Summary::default();
    let (mut batch, mut downloads, mut ended) = (Vec::new(), 0, false);
    while !ended {
        match rows.next_row()? {
            Some(Ok(person)) => {
                summary.add(&person);
                downloads += u64::from(person.downloads);
                batch.push(person);
            }
            Some(Err(row)) => summary.invalid.add(row),
            None => ended = true,
        }
        let is_complete = if all_or_nothing {
            ended && summary.invalid.rows == 0
        } else {
            ended || batch.len() == BATCH_SIZE || downloads > MAX_BATCH_DOWNLOADS
        };
        if is_complete {
            let started = Instant::now();
            let imported = import_people(store, &batch, now).await.or_fail(|failure| {
                let added = total.added;
                format!("The import stopped after {added} people: {failure}. Run the command again. {IMPORT_AGAIN}")
            })?;
            total.added += imported.added;
            total.suppressed += imported.suppressed;
            batch.clear();
            downloads = 0;
            if !ended {
                // SQLite's write lock is not fair: leave the service as much time to write as the import takes.
                tokio::time::sleep(started.elapsed()).await;
            }
        }
    }
    if rows.tool().is_none() {
        summary.invalid.print();
        rows.repeated.print();
    }
    let invalid = summary.invalid.rows;
    if all_or_nothing && invalid > 0 {
        return Err(summary.refusal(", so"));
    }
    let Imported { added, suppressed } = *total;
    let people = quantity(added, "person was", "people were");
    let mut done = format!("{people} added, {} already existed", summary.valid() - added);
    if suppressed > 0 {
        done = format!("{done}; {}", quantity(suppressed, "suppression is new", "suppressions are new"));
    }
    let unchanged = if added + suppressed == 0 { " Nothing was changed." } else { "" };
    eprint_line(&format!("{done}.{unchanged}"));
    if invalid > 0 {
        let were = plural_form(invalid, "was", "were");
        return Err(Failure::new(format!("{} {were} skipped. {FIX} {IMPORT_AGAIN}", summary.of_invalid())));
    }
    Ok(())
}
