//! People in a CSV file, out and in again. `docs/people.md` lists the columns.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use csv::{ByteRecord, Reader, ReaderBuilder, StringRecord, Writer};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::Instant;

use super::cells::{COLUMNS, Columns, cells};
use super::{PAGE, Pages, PeopleFailure};
use crate::actions::import_people;
use crate::cli::{CommandFailure, tell};
use crate::domain::person::Person;
use crate::domain::time::Moment;
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
    let out: Box<dyn Write> = match path {
        // Addresses are nobody else's business on this machine.
        Some(path) => {
            let mut options = OpenOptions::new();
            Box::new(options.write(true).create(true).truncate(true).mode(0o600).open(path).map_err(failed)?)
        }
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
    let written = bar.position();
    bar.finish_and_clear();
    if let Some(path) = path {
        let people = if written == 1 { "1 person is".to_owned() } else { format!("{written} people are") };
        tell(&format!("{people} in {}.", path.display()));
    }
    Ok(())
}

/// Takes everybody from the file who is not there yet, or nobody if a single row is bad.
pub(super) async fn import_all(store: &Store, path: &Path, now: Moment) -> Result<Imported, PeopleFailure> {
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
pub(super) async fn import(store: &Store, path: &Path, now: Moment) -> Result<Imported, PeopleFailure> {
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

/// The rows of a file, with a bar that shows how far it has been read.
struct Rows {
    reader: Reader<Box<dyn Read>>,
    columns: Columns,
    path: String,
    now: Moment,
    bar: ProgressBar,
}

impl Rows {
    fn open(path: &Path, now: Moment) -> Result<Self, PeopleFailure> {
        let name = path.display().to_string();
        let unreadable = |why: String| PeopleFailure::File(name.clone(), why);
        let (file, length): (Box<dyn Read>, _) = if path == Path::new("-") {
            (Box::new(io::stdin()), None)
        } else {
            let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
            let length = file.metadata().ok().map(|about| about.len()).filter(|length| *length > 0);
            (Box::new(file), length)
        };
        let mut reader = ReaderBuilder::new().flexible(true).from_reader(file);
        let header = reader.headers().map_err(|error| unreadable(error.to_string()))?;
        let columns = Columns::of(header).map_err(unreadable)?;
        for column in &columns.unknown {
            tell(&format!("The column {column:?} is not one of ours and is left out."));
        }
        let style =
            ProgressStyle::with_template("  reading {bar:32} {decimal_bytes} of {decimal_total_bytes}, {eta} left")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = length.map_or_else(ProgressBar::new_spinner, |length| ProgressBar::new(length).with_style(style));
        Ok(Self { reader, columns, path: name, now, bar })
    }

    /// The next row, good or bad; none at the end.
    fn next(&mut self) -> Result<Option<Result<Person, BadRow>>, PeopleFailure> {
        let mut record = ByteRecord::new();
        let more = self.reader.read_byte_record(&mut record);
        if !more.map_err(|error| PeopleFailure::File(self.path.clone(), error.to_string()))? {
            self.bar.finish_and_clear();
            return Ok(None);
        }
        self.bar.set_position(self.reader.position().byte());
        let line = record.position().map_or(0, csv::Position::line);
        let person = StringRecord::from_byte_record(record)
            .map_err(|_| "it is not in UTF-8".to_owned())
            .and_then(|record| self.columns.read(&record, self.now));
        Ok(Some(person.map_err(|why| BadRow { line, why })))
    }
}
