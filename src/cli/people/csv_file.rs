//! Exports people to a CSV file and imports them. `docs/people.md` lists the columns.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use csv::{ByteRecord, Reader, ReaderBuilder, StringRecord, Writer};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::Instant;

use super::csv_row::{COLUMNS, Columns, NOT_UTF_8, to_cells};
use super::private_file::PrivateFile;
use super::{BATCH_SIZE, PeopleCursor, PeopleFailure};
use crate::actions::import_people;
use crate::cli::{CommandFailure, eprint_line};
use crate::domain::person::Person;
use crate::domain::plural::quantity;
use crate::domain::time::Timestamp;
use crate::store::Store;

/// Writes a batch early once it holds this many downloads, because each of them becomes a row.
const MAX_BATCH_DOWNLOADS: u32 = 10_000;

/// A row that cannot be imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Line {line}: {why}.")]
pub struct InvalidRow {
    line: u64,
    why: String,
}

/// The result of an import.
pub(super) struct Imported {
    pub added: u64,
    pub valid: usize,
    pub invalid: Vec<InvalidRow>,
}

/// Exports everybody to the file, or to standard output.
pub(super) async fn export(store: &Store, path: Option<&Path>) -> Result<(), CommandFailure> {
    let failed = |error: io::Error| {
        let name = path.map_or_else(|| "standard output".to_owned(), |path| path.display().to_string());
        PeopleFailure::Export(name, error)
    };
    let mut file = path.map(PrivateFile::create).transpose().map_err(failed)?;
    let out: Box<dyn Write + '_> = match &mut file {
        Some(file) => Box::new(file),
        None => Box::new(io::stdout().lock()),
    };
    let bar = if path.is_some() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    let mut out = Writer::from_writer(out);
    out.write_record(COLUMNS).map_err(|error| failed(error.into()))?;
    let mut cursor = PeopleCursor { store, opted_in_only: false, last: None };
    let mut people = cursor.next().await?;
    while !people.is_empty() {
        for person in &people {
            out.write_record(to_cells(person)).map_err(|error| failed(error.into()))?;
            bar.inc(1);
        }
        people = cursor.next().await?;
    }
    out.flush().map_err(failed)?;
    drop(out);
    file.map(PrivateFile::persist).transpose().map_err(failed)?;
    let written = bar.position();
    bar.finish_and_clear();
    if let Some(path) = path {
        eprint_line(&format!("{} exported to {}.", quantity(written, "person was", "people were"), path.display()));
    }
    Ok(())
}

/// Imports the whole file in one transaction, or nothing if a row is invalid.
pub(super) async fn import_all(store: &Store, path: &Path, now: Timestamp) -> Result<Imported, PeopleFailure> {
    let (mut rows, mut people, mut invalid) = (Rows::open(path, now)?, Vec::new(), Vec::new());
    while let Some(row) = rows.next_row()? {
        match row {
            Ok(person) => people.push(person),
            Err(row) => invalid.push(row),
        }
    }
    let added = match invalid.as_slice() {
        [] => import_people(store, &people, now).await.map_err(|failure| PeopleFailure::Stopped(0, failure))?,
        _ => 0,
    };
    Ok(Imported { added, valid: people.len(), invalid })
}

/// Imports the file in batches, one transaction each. Importing the same file again continues after a failure.
pub(super) async fn import(store: &Store, path: &Path, now: Timestamp) -> Result<Imported, PeopleFailure> {
    let mut rows = Rows::open(path, now)?;
    let mut imported = Imported { added: 0, valid: 0, invalid: Vec::new() };
    let (mut batch, mut downloads) = (Vec::with_capacity(BATCH_SIZE), 0);
    loop {
        let row = rows.next_row()?;
        let ended = row.is_none();
        match row {
            Some(Ok(person)) => {
                downloads += person.downloads;
                batch.push(person);
            }
            Some(Err(row)) => imported.invalid.push(row),
            None => {}
        }
        if ended || batch.len() == BATCH_SIZE || downloads > MAX_BATCH_DOWNLOADS {
            imported.valid += batch.len();
            let started = Instant::now();
            let added = import_people(store, &batch, now).await;
            batch.clear();
            imported.added += added.map_err(|failure| PeopleFailure::Stopped(imported.added, failure))?;
            downloads = 0;
            if !ended {
                // SQLite's write lock is not fair: leave the service as much time to write as the import takes.
                tokio::time::sleep(started.elapsed()).await;
            }
        }
        if ended {
            return Ok(imported);
        }
    }
}

/// Appended to every file. It is read as a row of its own, unless an unclosed quote swallows it.
const END: &str = "\n\u{fdd0}\n";

/// Reads the rows of a file and updates a progress bar.
pub struct Rows {
    reader: Reader<Box<dyn Read>>,
    columns: Columns,
    path: String,
    now: Timestamp,
    bar: ProgressBar,
    /// The line that each address was in first.
    seen: HashMap<String, u64>,
}

impl Rows {
    /// Reads the first line, which names the columns. The path `-` is standard input.
    pub fn open(path: &Path, now: Timestamp) -> Result<Self, PeopleFailure> {
        let name = path.display().to_string();
        let unreadable = |why: String| PeopleFailure::File(name.clone(), why);
        let (file, length): (Box<dyn Read>, _) = if path == Path::new("-") {
            (Box::new(io::stdin()), None)
        } else {
            let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
            let length = file.metadata().ok().map(|about| about.len()).filter(|length| *length > 0);
            (Box::new(file), length)
        };
        let file: Box<dyn Read> = Box::new(file.chain(END.as_bytes()));
        let mut reader = ReaderBuilder::new().flexible(true).from_reader(file);
        let header = reader.byte_headers().map_err(|error| unreadable(error.to_string()))?;
        unclosed_quote(header).map_or(Ok(()), |why| Err(unreadable(why)))?;
        let header = StringRecord::from_byte_record(header.clone()).map_err(|_| unreadable(NOT_UTF_8.to_owned()))?;
        let columns = Columns::parse(&header).map_err(unreadable)?;
        for column in &columns.unknown {
            eprint_line(&format!("The unknown column {column:?} is ignored."));
        }
        let style =
            ProgressStyle::with_template("  reading {bar:32} {decimal_bytes} of {decimal_total_bytes}, {eta} left")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = length.map_or_else(ProgressBar::new_spinner, |length| ProgressBar::new(length).with_style(style));
        Ok(Self { reader, columns, path: name, now, bar, seen: HashMap::new() })
    }

    /// Returns the next row, valid or not, or `None` at the end of the file.
    pub fn next_row(&mut self) -> Result<Option<Result<Person, InvalidRow>>, PeopleFailure> {
        loop {
            let mut record = ByteRecord::new();
            let more = self.reader.read_byte_record(&mut record);
            let more = more.map_err(|error| PeopleFailure::File(self.path.clone(), error.to_string()))?;
            if !more || record == [END.trim()][..] {
                self.bar.finish_and_clear();
                return Ok(None);
            }
            self.bar.set_position(self.reader.position().byte());
            if let Some(why) = unclosed_quote(&record) {
                return Err(PeopleFailure::File(self.path.clone(), why));
            }
            let line = record.position().map_or(0, csv::Position::line);
            let person = StringRecord::from_byte_record(record)
                .map_err(|_| "it is not in UTF-8".to_owned())
                .and_then(|record| self.columns.parse_row(&record, self.now));
            if !person.as_ref().is_ok_and(|person| self.is_duplicate(person, line)) {
                return Ok(Some(person.map_err(|why| InvalidRow { line, why })));
            }
        }
    }

    /// Returns whether an earlier row has the same address. A row that suppresses the address is never skipped.
    fn is_duplicate(&mut self, person: &Person, line: u64) -> bool {
        let first = *self.seen.entry(person.email.key().to_owned()).or_insert(line);
        if first == line || person.suppressed.is_some() {
            return false;
        }
        let email = person.email.as_typed();
        eprint_line(&format!("Line {line}: {email} is already in line {first}, so this line is ignored."));
        true
    }
}

/// Leaves out what the file contains.
impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Returns a message if the last cell extends to the end of the file because its quote is not closed.
fn unclosed_quote(record: &ByteRecord) -> Option<String> {
    let (last, first_line) = (record.len().checked_sub(1)?, record.position().map_or(1, csv::Position::line));
    let is_newline = |byte: &&u8| **byte == b'\n';
    let lines = record.iter().take(last).flatten().filter(is_newline).count() as u64;
    let is_open = record.get(last)?.ends_with(END.as_bytes());
    is_open.then(|| format!("the quote that opens in line {} is never closed", first_line + lines))
}
