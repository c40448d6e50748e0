//! People in a CSV file, out and in again. `docs/people.md` lists the columns.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use csv::{ByteRecord, Reader, ReaderBuilder, StringRecord, Writer};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::Instant;

use super::cells::{COLUMNS, Columns, NOT_UTF_8, cells};
use super::private_file::PrivateFile;
use super::{PAGE, Pages, PeopleFailure};
use crate::actions::import_people;
use crate::cli::{CommandFailure, tell};
use crate::domain::person::Person;
use crate::domain::plural::quantity;
use crate::domain::time::Timestamp;
use crate::store::Store;

/// Most downloads that are written in one go, so that a list of busy people makes no long statement.
const MOST_DOWNLOADS_AT_ONCE: u32 = 10_000;

/// A row that is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Line {line}: {why}.")]
pub(super) struct BadRow {
    line: u64,
    why: String,
}

/// What came of an import.
pub(super) struct Imported {
    pub added: u64,
    pub good: usize,
    pub bad: Vec<BadRow>,
}

/// Writes everybody to the file, or to standard output.
pub(super) async fn export(store: &Store, path: Option<&Path>) -> Result<(), CommandFailure> {
    let failed = |error: io::Error| {
        let place = path.map_or_else(|| "standard output".to_owned(), |path| path.display().to_string());
        PeopleFailure::Export(place, error)
    };
    // Addresses are nobody else's business on this machine.
    let mut file = path.map(PrivateFile::create).transpose().map_err(failed)?;
    let out: Box<dyn Write + '_> = match &mut file {
        Some(file) => Box::new(file),
        None => Box::new(io::stdout().lock()),
    };
    let bar = if path.is_some() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    let mut out = Writer::from_writer(out);
    out.write_record(COLUMNS).map_err(|error| failed(error.into()))?;
    let mut pages = Pages { store, opted_in_only: false, last: None };
    let mut people = pages.next().await?;
    while !people.is_empty() {
        for person in &people {
            out.write_record(cells(person)).map_err(|error| failed(error.into()))?;
            bar.inc(1);
        }
        people = pages.next().await?;
    }
    out.flush().map_err(failed)?;
    drop(out);
    file.map(PrivateFile::keep).transpose().map_err(failed)?;
    let written = bar.position();
    bar.finish_and_clear();
    if let Some(path) = path {
        tell(&format!("{} in {}.", quantity(written, "person is", "people are"), path.display()));
    }
    Ok(())
}

/// Takes everybody from the file who is not there yet, or nobody if a single row is bad.
pub(super) async fn import_all(store: &Store, path: &Path, now: Timestamp) -> Result<Imported, PeopleFailure> {
    let (mut rows, mut people, mut bad) = (Rows::open(path, now)?, Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        match row {
            Ok(person) => people.push(person),
            Err(row) => bad.push(row),
        }
    }
    let added = match bad.as_slice() {
        [] => import_people(store, &people, now).await.map_err(|failure| PeopleFailure::Stopped(0, failure))?,
        _ => 0,
    };
    Ok(Imported { added, good: people.len(), bad })
}

/// Takes everybody from the file who is not there yet, a batch at a time. What is in is in, and the
/// same file again goes on from there.
pub(super) async fn import(store: &Store, path: &Path, now: Timestamp) -> Result<Imported, PeopleFailure> {
    let mut rows = Rows::open(path, now)?;
    let mut imported = Imported { added: 0, good: 0, bad: Vec::new() };
    let (mut batch, mut downloads) = (Vec::with_capacity(PAGE), 0);
    loop {
        let row = rows.next()?;
        let ended = row.is_none();
        match row {
            Some(Ok(person)) => {
                downloads += person.downloads;
                batch.push(person);
            }
            Some(Err(row)) => imported.bad.push(row),
            None => {}
        }
        if ended || batch.len() == PAGE || downloads > MOST_DOWNLOADS_AT_ONCE {
            imported.good += batch.len();
            let began = Instant::now();
            let taken = import_people(store, &batch, now).await;
            batch.clear();
            imported.added += taken.map_err(|failure| PeopleFailure::Stopped(imported.added, failure))?;
            downloads = 0;
            if !ended {
                // Visitors want to write, too, and an embedded database has no queue for who comes next.
                tokio::time::sleep(began.elapsed()).await;
            }
        }
        if ended {
            return Ok(imported);
        }
    }
}

/// Stands after the last row of every file, and is read as a row of its own unless a quote was never closed.
const END: &str = "\n\u{fdd0}\n";

/// The rows of a file, with a bar that shows how far it has been read.
struct Rows {
    reader: Reader<Box<dyn Read>>,
    columns: Columns,
    path: String,
    now: Timestamp,
    bar: ProgressBar,
    /// The line that each address was in first.
    seen: HashMap<String, u64>,
}

impl Rows {
    fn open(path: &Path, now: Timestamp) -> Result<Self, PeopleFailure> {
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
        never_closed(header).map_or(Ok(()), |why| Err(unreadable(why)))?;
        let header = StringRecord::from_byte_record(header.clone()).map_err(|_| unreadable(NOT_UTF_8.to_owned()))?;
        let columns = Columns::of(&header).map_err(unreadable)?;
        for column in &columns.unknown {
            tell(&format!("The column {column:?} is not one of ours and is left out."));
        }
        let style =
            ProgressStyle::with_template("  reading {bar:32} {decimal_bytes} of {decimal_total_bytes}, {eta} left")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = length.map_or_else(ProgressBar::new_spinner, |length| ProgressBar::new(length).with_style(style));
        Ok(Self { reader, columns, path: name, now, bar, seen: HashMap::new() })
    }

    /// The next row, good or bad; none at the end.
    fn next(&mut self) -> Result<Option<Result<Person, BadRow>>, PeopleFailure> {
        loop {
            let mut record = ByteRecord::new();
            let more = self.reader.read_byte_record(&mut record);
            let more = more.map_err(|error| PeopleFailure::File(self.path.clone(), error.to_string()))?;
            if !more || record == [END.trim()][..] {
                self.bar.finish_and_clear();
                return Ok(None);
            }
            self.bar.set_position(self.reader.position().byte());
            if let Some(why) = never_closed(&record) {
                return Err(PeopleFailure::File(self.path.clone(), why));
            }
            let line = record.position().map_or(0, csv::Position::line);
            let person = StringRecord::from_byte_record(record)
                .map_err(|_| "it is not in UTF-8".to_owned())
                .and_then(|record| self.columns.read(&record, self.now));
            if !person.as_ref().is_ok_and(|person| self.is_repeated(person, line)) {
                return Ok(Some(person.map_err(|why| BadRow { line, why })));
            }
        }
    }

    /// Whether the file had this address before; then the first row counts, unless this one suppresses it.
    fn is_repeated(&mut self, person: &Person, line: u64) -> bool {
        let first = *self.seen.entry(person.email.key().to_owned()).or_insert(line);
        if first == line || person.suppressed.is_some() {
            return false;
        }
        let email = person.email.as_typed();
        tell(&format!("Line {line}: {email} is twice in the file, and line {first} counts."));
        true
    }
}

/// Says so where the last cell goes on to the end of the file because its quote is never closed.
fn never_closed(record: &ByteRecord) -> Option<String> {
    let (last, before) = (record.len().checked_sub(1)?, record.position().map_or(1, csv::Position::line));
    let is_newline = |byte: &&u8| **byte == b'\n';
    let lines = record.iter().take(last).flatten().filter(is_newline).count() as u64;
    let is_open = record.get(last)?.ends_with(END.as_bytes());
    is_open.then(|| format!("the quote that opens in line {} is never closed", before + lines))
}
