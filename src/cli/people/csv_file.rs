//! Exports people to a CSV file and imports them. `docs/people.md` lists the columns.

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use csv::{ByteRecord, IntoInnerError, Reader, ReaderBuilder, StringRecord, Writer};
use indicatif::ProgressBar;
use tempfile::TempPath;
use tokio::time::Instant;

use super::csv_row::{COLUMNS, Columns, NOT_UTF_8, to_cells};
use super::list::{BATCH_SIZE, incomplete};
use crate::actions::import_people;
use crate::cli::failure::{Failure, OrFail};
use crate::cli::terminal::{eprint_line, exit_on_interrupt, print_bytes, progress_style};
use crate::clock::Clock;
use crate::domain::people::Person;
use crate::domain::text::{plural_form, quantity};
use crate::domain::time::Timestamp;
use crate::store::Store;

/// Writes a batch early once it holds this many downloads, because each of them becomes a row.
const MAX_BATCH_DOWNLOADS: u64 = 10_000;

const IMPORT_AGAIN: &str = "People who were already imported are not changed.";

/// A row that cannot be imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Line {line}: {why}.")]
pub struct InvalidRow {
    line: u64,
    why: String,
}

/// Where an export goes.
struct Target {
    /// `None`: standard output.
    file: Option<File>,
    /// The file is a temporary one that only its owner can read, in the folder of the path that it replaces in the end. Until
    /// then it is deleted if something fails. `None`: a pipe or device, written to directly.
    replaces: Option<(TempPath, PathBuf)>,
}

impl Target {
    fn create(path: Option<&Path>) -> io::Result<Self> {
        let Some(path) = path else { return Ok(Self { file: None, replaces: None }) };
        // Replaces the target of a symbolic link, not the link.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            return Ok(Self { file: Some(OpenOptions::new().write(true).open(&path)?), replaces: None });
        }
        path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let (file, temporary) =
            tempfile::Builder::new().prefix(".porchlight-export-").tempfile_in(folder)?.into_parts();
        Ok(Self { file: Some(file), replaces: Some((temporary, path)) })
    }

    /// Returns `false` once standard output has failed.
    fn write(&mut self, bytes: &[u8]) -> io::Result<bool> {
        match &mut self.file {
            None => Ok(print_bytes(bytes)),
            Some(file) => file.write_all(bytes).map(|()| true),
        }
    }

    fn finish(self) -> io::Result<()> {
        if let (Some(file), Some((temporary, path))) = (self.file, self.replaces) {
            file.sync_all()?;
            temporary.persist(path)?;
        }
        Ok(())
    }
}

/// Exports everybody to the file, or to standard output.
pub(super) async fn export(store: &Store, path: Option<&Path>) -> Result<(), Failure> {
    let failed = |error: io::Error| {
        let name = path.unwrap_or(Path::new("standard output")).display();
        format!("The list cannot be written to {name}: {error}.")
    };
    let mut target = Target::create(path).or_fail(failed)?;
    let bar = if path.is_some() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    let mut last = None;
    let mut rows = vec![COLUMNS.map(str::to_owned)];
    while !rows.is_empty() {
        let mut csv = Writer::from_writer(Vec::new());
        let written = rows.iter().try_for_each(|row| csv.write_record(row));
        let bytes =
            written.map_err(io::Error::from).and_then(|()| csv.into_inner().map_err(IntoInnerError::into_error));
        if !bytes.and_then(|bytes| target.write(&bytes)).or_fail(failed)? {
            return Ok(());
        }
        let people = store.people_page(last.as_ref(), BATCH_SIZE).await.or_fail(incomplete)?;
        rows = people.iter().map(to_cells).collect();
        last = people.into_iter().next_back().map(|person| person.email);
        bar.inc(rows.len() as u64);
    }
    target.finish().or_fail(failed)?;
    let exported = quantity(bar.position(), "person was", "people were");
    bar.finish_and_clear();
    if let Some(path) = path {
        eprint_line(&format!("{exported} exported to {}.", path.display()));
    }
    Ok(())
}

/// Imports the file in batches, one transaction each. Importing the same file again continues after a failure.
/// With `all_or_nothing` the whole file is one batch, which is not imported if a row is invalid.
pub(super) async fn import(store: &Store, path: &Path, all_or_nothing: bool) -> Result<(), Failure> {
    exit_on_interrupt(if all_or_nothing {
        "Interrupted: nothing was imported.".to_owned()
    } else {
        format!("Interrupted. Run the command again. {IMPORT_AGAIN}")
    })?;
    let now = Clock::System.now();
    let mut rows = Rows::open(path, now)?;
    let (mut valid, mut invalid, mut added) = (0_u64, Vec::new(), 0);
    let (mut batch, mut downloads, mut ended) = (Vec::new(), 0, false);
    while !ended {
        match rows.next_row()? {
            Some(Ok(person)) => {
                valid += 1;
                downloads += u64::from(person.downloads);
                batch.push(person);
            }
            Some(Err(row)) => invalid.push(row),
            None => ended = true,
        }
        let is_complete = if all_or_nothing {
            ended && invalid.is_empty()
        } else {
            ended || batch.len() == BATCH_SIZE || downloads > MAX_BATCH_DOWNLOADS
        };
        if is_complete {
            let started = Instant::now();
            added += import_people(store, &batch, now).await.or_fail(|failure| {
                format!("The import stopped after {added} people: {failure}. Run the command again. {IMPORT_AGAIN}")
            })?;
            batch.clear();
            downloads = 0;
            if !ended {
                // SQLite's write lock is not fair: leave the service as much time to write as the import takes.
                tokio::time::sleep(started.elapsed()).await;
            }
        }
    }
    for row in &invalid {
        eprint_line(&row.to_string());
    }
    let (invalid, fix) = (invalid.len() as u64, "Fix the file and run the command again.");
    let of_all = format!("{invalid} of {} rows", valid + invalid);
    if all_or_nothing && invalid > 0 {
        let are = plural_form(invalid, "is", "are");
        return Err(Failure::new(format!("{of_all} {are} invalid, so nothing was imported. {fix}")));
    }
    let people = quantity(added, "person was", "people were");
    eprint_line(&format!("{people} added, {} already existed.", valid - added));
    if invalid > 0 {
        let were = plural_form(invalid, "was", "were");
        return Err(Failure::new(format!("{of_all} {were} skipped. {fix} {IMPORT_AGAIN}")));
    }
    Ok(())
}

/// Appended to every file. It is read as a row of its own, unless an unclosed quote swallows it.
const END: &str = "\n\u{fdd0}\n";

/// Reads the rows of a file and updates a progress bar.
pub struct Rows {
    reader: Reader<Box<dyn Read>>,
    columns: Columns,
    path: PathBuf,
    now: Timestamp,
    bar: ProgressBar,
    /// The line that each address was in first.
    seen: HashMap<String, u64>,
}

impl Rows {
    /// Reads the first line, which names the columns. The path `-` is standard input.
    pub fn open(path: &Path, now: Timestamp) -> Result<Self, Failure> {
        let (file, length): (Box<dyn Read>, _) = if path == Path::new("-") {
            (Box::new(io::stdin()), None)
        } else {
            let file = File::open(path).or_fail(|error| unreadable(path, error))?;
            let length = file.metadata().ok().map(|about| about.len()).filter(|length| *length > 0);
            (Box::new(file), length)
        };
        let file: Box<dyn Read> = Box::new(file.chain(END.as_bytes()));
        let mut reader = ReaderBuilder::new().flexible(true).from_reader(file);
        let columns = read_columns(&mut reader).or_fail(|why| unreadable(path, why))?;
        for column in columns.unknown() {
            eprint_line(&format!("The unknown column {column:?} is ignored."));
        }
        let style = progress_style("  reading {bar:32} {decimal_bytes} of {decimal_total_bytes}, {eta} left");
        let bar = length.map_or_else(ProgressBar::new_spinner, |length| ProgressBar::new(length).with_style(style));
        Ok(Self { reader, columns, path: path.to_owned(), now, bar, seen: HashMap::new() })
    }

    /// Returns the next row, valid or not, or `None` at the end of the file.
    pub fn next_row(&mut self) -> Result<Option<Result<Person, InvalidRow>>, Failure> {
        loop {
            let mut record = ByteRecord::new();
            let more = self.reader.read_byte_record(&mut record).or_fail(|error| unreadable(&self.path, error))?;
            if !more || record == [END.trim()][..] {
                self.bar.finish_and_clear();
                return Ok(None);
            }
            self.bar.set_position(self.reader.position().byte());
            check_quotes(&record).or_fail(|why| unreadable(&self.path, why))?;
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

fn unreadable(path: &Path, why: impl Display) -> String {
    format!("{} cannot be read: {why}.", path.display())
}

fn read_columns(reader: &mut Reader<Box<dyn Read>>) -> Result<Columns, String> {
    let header = reader.byte_headers().map_err(|error| error.to_string())?;
    check_quotes(header)?;
    let header = StringRecord::from_byte_record(header.clone()).map_err(|_| NOT_UTF_8.to_owned())?;
    Columns::parse(&header)
}

/// Returns an error if the last cell extends to the end of the file because its quote is not closed.
fn check_quotes(record: &ByteRecord) -> Result<(), String> {
    let cells: Vec<_> = record.iter().collect();
    match cells.split_last() {
        Some((last, others)) if last.ends_with(END.as_bytes()) => {
            let lines = others.iter().copied().flatten().filter(|byte| **byte == b'\n').count() as u64;
            let line = record.position().map_or(1, csv::Position::line) + lines;
            Err(format!("the quote that opens in line {line} is never closed"))
        }
        _ => Ok(()),
    }
}
