//! Writes people to a CSV file, and reads the rows of one. `docs/people.md` lists the columns.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Display};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use csv::{ByteRecord, IntoInnerError, Reader, ReaderBuilder, StringRecord, Writer};
use indicatif::ProgressBar;
use tempfile::TempPath;

use super::cells::Problem;
use super::csv_row::{COLUMNS, Columns, NOT_UTF_8, to_cells};
use super::list::{BATCH_SIZE, incomplete};
use super::tools::Tool;
use crate::cli::failure::{Failure, OrFail};
use crate::cli::terminal::{eprint_line, print_bytes, progress_style};
use crate::domain::people::Person;
use crate::domain::text::quantity;
use crate::domain::time::Timestamp;
use crate::store::Store;

/// A row that cannot be imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Line {line}: {why}.")]
pub struct InvalidRow {
    line: u64,
    why: Problem,
}

/// What is wrong with the rows of a file. What several rows have in common is one entry.
#[derive(Debug, Default)]
pub(super) struct Problems {
    pub rows: u64,
    by_kind: BTreeMap<String, (InvalidRow, Vec<u64>, u64)>,
}

impl Problems {
    /// How many lines are named of those with the same problem.
    const MAX_LINES: usize = 3;

    pub(super) fn add(&mut self, row: InvalidRow) {
        self.rows += 1;
        let line = row.line;
        let (_, lines, more) = self.by_kind.entry(row.why.kind.clone()).or_insert((row, Vec::new(), 0));
        if lines.len() < Self::MAX_LINES { lines.push(line) } else { *more += 1 }
    }

    /// Prints them in the order of their first lines.
    pub(super) fn print(&self) {
        let mut groups: Vec<_> = self.by_kind.values().collect();
        groups.sort_by_key(|(first, ..)| first.line);
        for (first, lines, more) in groups {
            let mut lines: Vec<_> = lines.iter().map(u64::to_string).collect();
            lines.extend((*more > 0).then(|| format!("{more} more")));
            match lines.split_last() {
                Some((last, others)) if !others.is_empty() => {
                    eprint_line(&format!("Lines {} and {last}: {}.", others.join(", "), first.why.kind));
                }
                _ => eprint_line(&first.to_string()),
            }
        }
    }
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

/// Appended to every file, with its kind of line breaks. It is read as a row of its own, unless an unclosed quote swallows it.
const END: &str = "\n\u{fdd0}\n";
const END_AFTER_CRLF: &str = "\r\n\u{fdd0}\r\n";

/// Reads the rows of a file and updates a progress bar.
pub struct Rows {
    reader: Reader<Box<dyn Read>>,
    columns: Columns,
    path: PathBuf,
    now: Timestamp,
    bar: ProgressBar,
    /// The line that each address was in first.
    seen: HashMap<String, u64>,
    /// Rows that are left out because an earlier one has the same address.
    pub(super) repeated: Problems,
    end: &'static str,
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
        let mut file = BufReader::new(file);
        let start = file.fill_buf().or_fail(|error| unreadable(path, error))?;
        let line = start.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
        let end = if line.ends_with(b"\r\n") { END_AFTER_CRLF } else { END };
        let file: Box<dyn Read> = Box::new(file.chain(end.as_bytes()));
        let mut reader = ReaderBuilder::new().flexible(true).from_reader(file);
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let columns = read_columns(&mut reader, &name, end).or_fail(|why| unreadable(path, why))?;
        let style = progress_style("  reading {bar:32} {decimal_bytes} of {decimal_total_bytes}, {eta} left");
        let bar = length.map_or_else(ProgressBar::new_spinner, |length| ProgressBar::new(length).with_style(style));
        let (path, seen, repeated) = (path.to_owned(), HashMap::new(), Problems::default());
        Ok(Self { reader, columns, path, now, bar, seen, repeated, end })
    }

    /// Whose export it is, if not of this service.
    pub(super) const fn tool(&self) -> Option<&'static Tool> {
        self.columns.tool
    }

    /// The columns that are ignored.
    pub(super) fn unknown_columns(&self) -> impl Iterator<Item = String> {
        self.columns.unknown()
    }

    /// Returns the next row, valid or not, or `None` at the end of the file.
    pub fn next_row(&mut self) -> Result<Option<Result<Person, InvalidRow>>, Failure> {
        loop {
            let mut record = ByteRecord::new();
            let more = self.reader.read_byte_record(&mut record).or_fail(|error| unreadable(&self.path, error))?;
            if !more || record == [self.end.trim()][..] {
                self.bar.finish_and_clear();
                return Ok(None);
            }
            let position = self.reader.position();
            self.bar.set_position(position.byte());
            check_quotes(&record, position.line(), self.end).or_fail(|why| unreadable(&self.path, why))?;
            // The reader counts line feeds, and has not read the one after a carriage return yet.
            let after = u64::from(self.end == END) + record.iter().map(line_feeds).sum::<u64>();
            let line = position.line().saturating_sub(after);
            let person = StringRecord::from_byte_record(record)
                .map_err(|_| "it is not in UTF-8".to_owned().into())
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
        let why = Problem::new(
            format!("{} is already in line {first}, so this line is ignored", person.email.as_typed()),
            "the addresses are already in earlier lines, so these lines are ignored",
        );
        self.repeated.add(InvalidRow { line, why });
        true
    }
}

/// Leaves out what the file contains.
impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("path", &self.path).finish_non_exhaustive()
    }
}

pub(super) fn unreadable(path: &Path, why: impl Display) -> String {
    format!("{} cannot be read: {why}.", path.display())
}

fn line_feeds(cell: &[u8]) -> u64 {
    cell.split(|byte| *byte == b'\n').skip(1).count() as u64
}

fn read_columns(reader: &mut Reader<Box<dyn Read>>, file_name: &str, end: &str) -> Result<Columns, String> {
    let header = reader.byte_headers().map_err(|error| error.to_string())?.clone();
    check_quotes(&header, reader.position().line(), end)?;
    let header = StringRecord::from_byte_record(header).map_err(|_| NOT_UTF_8.to_owned())?;
    Columns::parse(&header, file_name)
}

/// Returns an error if the last cell extends to the end of the file, in this line, because its quote is not closed.
fn check_quotes(record: &ByteRecord, last_line: u64, end: &str) -> Result<(), String> {
    match record.iter().next_back().filter(|cell| cell.ends_with(end.as_bytes())) {
        Some(cell) => {
            Err(format!("the quote that opens in line {} is never closed", last_line.saturating_sub(line_feeds(cell))))
        }
        None => Ok(()),
    }
}
