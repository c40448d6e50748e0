//! Converts a person to a CSV row and back.
//!
//! A spreadsheet evaluates a cell that starts with certain characters as a formula. Such a cell is written with an
//! apostrophe in front, and so is a part of a cell that follows what some spreadsheets take for a separator. The apostrophes
//! are removed when the cell is read.

use csv::StringRecord;

use crate::domain::limits::MAX_IMPORTED_DOWNLOADS;
use crate::domain::mail::EmailAddress;
use crate::domain::people::{Person, SuppressionReason};
use crate::domain::signups::{EXTERNAL_WORDING, OptIn, Via};
use crate::domain::text::{Source, is_invisible, is_joiner, quantity};
use crate::domain::time::Timestamp;

pub(super) const COLUMNS: [&str; 14] = [
    "email",
    "first_seen",
    "downloads",
    "waitlist",
    "updates",
    "opted_in_at",
    "via",
    "source",
    "wording",
    "confirmed_at",
    "suppressed",
    "suppressed_reason",
    "pending_since",
    "asked_at",
];

/// Spreadsheets often save CSV in another encoding by default.
pub(super) const NOT_UTF_8: &str = "it is not in UTF-8; save it as “CSV UTF-8”";

/// Returns the row of a person. An import ignores the last two columns, because it cannot ask anybody for a confirmation. The opt-in of a suppressed address is omitted, so that another program that reads the
/// file does not mail it.
pub(super) fn to_cells(person: &Person) -> [String; COLUMNS.len()] {
    let opt_in = person.opt_in.as_ref().filter(|_| person.receives_letter());
    let of_opt_in = |cell: fn(&OptIn) -> String| opt_in.map(cell).unwrap_or_default();
    [
        person.email.as_typed().to_owned(),
        person.first_seen.rfc3339(),
        person.downloads.to_string(),
        person.waitlist.to_string(),
        person.receives_letter().to_string(),
        of_opt_in(|opt_in| opt_in.at.rfc3339()),
        of_opt_in(|opt_in| opt_in.via.as_str().to_owned()),
        of_opt_in(|opt_in| opt_in.source.as_ref().map(Source::as_str).unwrap_or_default().to_owned()),
        of_opt_in(|opt_in| opt_in.wording.to_string()),
        of_opt_in(|opt_in| opt_in.confirmed_at.map(Timestamp::rfc3339).unwrap_or_default()),
        person.suppressed.is_some().to_string(),
        person.suppressed.map(SuppressionReason::as_str).unwrap_or_default().to_owned(),
        person.pending.map(|pending| pending.since.rfc3339()).unwrap_or_default(),
        person.pending.and_then(|pending| pending.asked_at).map(Timestamp::rfc3339).unwrap_or_default(),
    ]
    .map(|cell| escape_formula(&cell))
}

/// The names of a file's columns, in lower case.
#[derive(Debug)]
pub(super) struct Columns(Vec<String>);

impl Columns {
    pub(super) fn parse(header: &StringRecord) -> Result<Self, String> {
        let names: Vec<String> =
            header.iter().map(|name| name.trim_start_matches('\u{feff}').trim().to_lowercase()).collect();
        let count = |column: &str| names.iter().filter(|name| *name == column).count();
        if count("email") == 0 {
            return Err(missing_email_column(&names));
        }
        match COLUMNS.into_iter().find(|column| count(column) > 1) {
            Some(column) => Err(format!("its first line names the column {column:?} twice")),
            None => Ok(Self(names)),
        }
    }

    /// The columns that are ignored.
    pub(super) fn unknown(&self) -> impl Iterator<Item = String> {
        self.0.iter().filter(|name| !COLUMNS.contains(&name.as_str())).map(|name| shorten(name))
    }

    /// Parses a row, or returns what is wrong with it.
    pub(super) fn parse_row(&self, row: &StringRecord, now: Timestamp) -> Result<Person, String> {
        if row.len() != self.0.len() {
            let cells = quantity(row.len() as u64, "cell", "cells");
            return Err(format!("it has {cells}, and the first line has {}", self.0.len()));
        }
        Row { columns: self, cells: row, now }.person()
    }
}

/// Returns the likely reason why no column is named `email`.
fn missing_email_column(names: &[String]) -> String {
    let separated_by =
        |separator: char| names.iter().any(|name| name.split(separator).any(|name| name.trim() == "email"));
    if names.iter().any(|name| name.contains('\0')) {
        return NOT_UTF_8.to_owned();
    }
    if separated_by(';') {
        return "its cells are separated by semicolons; save it with commas instead".to_owned();
    }
    if separated_by('\t') {
        return "its cells are separated by tabs; save it with commas instead".to_owned();
    }
    "its first line has no column \"email\"".to_owned()
}

/// Shortens a cell for an error message.
fn shorten(cell: &str) -> String {
    const MAX_CHARS: usize = 60;
    match cell.char_indices().nth(MAX_CHARS) {
        None => cell.to_owned(),
        Some((end, _)) => format!("{}…", &cell[..end]),
    }
}

struct Row<'a> {
    columns: &'a Columns,
    cells: &'a StringRecord,
    now: Timestamp,
}

impl Row<'_> {
    fn person(&self) -> Result<Person, String> {
        let opted_in_at = self.timestamp("opted_in_at")?;
        let opt_in = self.opt_in(opted_in_at.unwrap_or(self.now))?;
        let reason = self.parse("suppressed_reason", "is not one of not-me, no-mailbox and makers", known_reason)?;
        let email = EmailAddress::parse(&self.trimmed("email"));
        let is_not_number = format!("is not a number up to {MAX_IMPORTED_DOWNLOADS}");
        let is_allowed = |count: &u32| *count <= MAX_IMPORTED_DOWNLOADS;
        let downloads = self.parse("downloads", &is_not_number, |text| text.parse().ok().filter(is_allowed))?;
        Ok(Person {
            email: email.map_err(|why| self.invalid("email", &format!("is not an address: {why}")))?,
            first_seen: self.timestamp("first_seen")?.or(opted_in_at).unwrap_or(self.now),
            downloads: downloads.unwrap_or_default(),
            waitlist: self.boolean("waitlist")?,
            opt_in: self.boolean("updates")?.then_some(opt_in),
            pending: None,
            suppressed: self.boolean("suppressed")?.then_some(reason.unwrap_or(SuppressionReason::Makers)),
        })
    }

    fn opt_in(&self, at: Timestamp) -> Result<OptIn, String> {
        let via = self.parse("via", "is not one of site, api, mcp and import", Via::parse)?;
        let wording = self.parse("wording", "is not the number of a wording", |text| {
            text.parse().ok().filter(|number| *number >= 0)
        })?;
        let source =
            Some(self.cell("source")).filter(|text| !text.is_empty()).map(|text| Source::parse(&text)).transpose();
        Ok(OptIn {
            at,
            via: via.unwrap_or(Via::Import),
            source: source.map_err(|why| self.invalid("source", &format!("is too long: {why}")))?,
            wording: wording.unwrap_or(EXTERNAL_WORDING),
            confirmed_at: self.timestamp("confirmed_at")?,
        })
    }

    fn cell(&self, column: &str) -> String {
        let index = self.columns.0.iter().position(|name| name == column);
        unescape_formula(index.and_then(|index| self.cells.get(index)).unwrap_or_default())
    }

    fn trimmed(&self, column: &str) -> String {
        self.cell(column).trim().to_owned()
    }

    fn invalid(&self, column: &str, why: &str) -> String {
        format!("{column} is {:?}, which {why}", shorten(&self.trimmed(column)))
    }

    /// Parses a cell, unless it is empty. `why` says what an invalid one is.
    fn parse<T>(&self, column: &str, why: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>, String> {
        match self.trimmed(column).as_str() {
            "" => Ok(None),
            text => parse(text).map(Some).ok_or_else(|| self.invalid(column, why)),
        }
    }

    fn boolean(&self, column: &str) -> Result<bool, String> {
        Ok(self.parse(column, "is neither true nor false", parse_boolean)?.unwrap_or_default())
    }

    fn timestamp(&self, column: &str) -> Result<Option<Timestamp>, String> {
        let timestamp = self.parse(column, "is not a time such as 2026-11-15T12:00:00Z", Timestamp::parse)?;
        if timestamp.is_some_and(|timestamp| timestamp > self.now) {
            return Err(self.invalid(column, "is in the future"));
        }
        Ok(timestamp)
    }
}

fn parse_boolean(cell: &str) -> Option<bool> {
    match cell.to_lowercase().as_str() {
        "true" | "yes" | "y" | "1" => Some(true),
        "false" | "no" | "n" | "0" => Some(false),
        _ => None,
    }
}

/// Spreadsheets in many languages take semicolons for separators, and tabs and line breaks, too. What follows one may
/// become a cell.
const SEPARATORS: [char; 4] = [';', '\t', '\r', '\n'];

/// Whether a part of a cell, with the separator that ends it, would be a formula, or looks like an escaped one. At the start
/// of the cell (`index` 0) spreadsheets skip tabs and line breaks, and anywhere what is not seen. Some read full-width characters as
/// the ASCII ones.
fn must_be_escaped(part: &str, index: usize) -> bool {
    let is_unseen = |c: char| (c.is_whitespace() || is_invisible(c) || is_joiner(c)) && !SEPARATORS.contains(&c);
    let start = part.trim_start_matches(|c| matches!(c, '\'' | '"') || is_unseen(c));
    start.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠'])
        || (index == 0 && start.starts_with(['\t', '\r', '\n']))
}

/// Puts an apostrophe in front of each part that would be a formula.
pub(in crate::cli) fn escape_formula(cell: &str) -> String {
    let mut escaped = String::new();
    for (index, part) in cell.split_inclusive(SEPARATORS).enumerate() {
        if must_be_escaped(part, index) {
            escaped.push('\'');
        }
        escaped.push_str(part);
    }
    escaped
}

/// Removes the apostrophes of [`escape_formula`].
fn unescape_formula(cell: &str) -> String {
    let parts = cell.split_inclusive(SEPARATORS).enumerate();
    parts
        .map(|(index, part)| part.strip_prefix('\'').filter(|rest| must_be_escaped(rest, index)).unwrap_or(part))
        .collect()
}

/// A reason that this version records.
fn known_reason(cell: &str) -> Option<SuppressionReason> {
    SuppressionReason::parse(cell).filter(|reason| *reason != SuppressionReason::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Timestamp = Timestamp::from_unix_millis(1_794_744_000_000);

    fn read(header: &[&str], row: &[&str]) -> Result<Person, String> {
        Columns::parse(&StringRecord::from(header.to_vec()))?.parse_row(&StringRecord::from(row.to_vec()), NOW)
    }

    #[test]
    fn a_row_with_only_an_address_does_not_opt_in() {
        let person = read(&["email"], &["Ada@Example.com"]).unwrap();
        assert_eq!(person.email.as_typed(), "Ada@Example.com");
        assert_eq!((person.opt_in, person.suppressed, person.waitlist, person.downloads), (None, None, false, 0));
        assert_eq!(person.first_seen, NOW);
    }

    #[test]
    fn only_the_column_updates_opts_in() {
        let header = ["email", "opted_in_at", "via", "updates"];
        for (updates, opts_in) in [("", false), ("no", false), ("FALSE", false), ("true", true), ("Yes", true)] {
            let person = read(&header, &["ada@example.com", "2026-01-02", "site", updates]).unwrap();
            assert_eq!(person.opt_in.is_some(), opts_in, "{updates}");
        }
        assert_eq!(read(&header[..3], &["ada@example.com", "2026-01-02", "site"]).unwrap().opt_in, None);
    }

    #[test]
    fn an_invalid_row_is_explained() {
        let header = ["email", "downloads", "updates", "opted_in_at", "via", "suppressed_reason", "source"];
        let valid = ["ada@example.com", "1", "true", "2026-01-02", "site", "makers", "a friend"];
        assert!(read(&header, &valid).is_ok());
        let long = "x".repeat(33);
        for (index, cell, reason) in [
            (0, "ada", "is not an address"),
            (0, "", "is not an address"),
            (1, "-1", "is not a number up to 10000000"),
            (1, "10000001", "is not a number up to 10000000"),
            (2, "perhaps", "is neither true nor false"),
            (3, "last year", "is not a time"),
            (3, "2026-11-16", "is in the future"),
            (4, "fax", "is not one of site, api, mcp and import"),
            (5, "spam", "is not one of not-me, no-mailbox and makers"),
            (6, long.as_str(), "is too long"),
        ] {
            let mut row = valid;
            row[index] = cell;
            let why = read(&header, &row).unwrap_err();
            assert!(why.starts_with(header[index]) && why.contains(reason), "{why}");
        }
        assert!(read(&header, &valid[..6]).unwrap_err().contains("it has 6 cells"));
        assert!(read(&["mail"], &["ada@example.com"]).is_err());
        assert!(read(&header[..1], &[&"x".repeat(5_000_000)]).unwrap_err().len() < 200, "a long cell is shortened");
        for (header, reason) in [
            ("email;updates", "semicolons"),
            ("Name\tEmail", "tabs"),
            ("e\0m\0a\0i\0l\0", "UTF-8"),
            ("mail;updates", "has no column"),
        ] {
            let why = read(&[header], &["ada@example.com;true"]).unwrap_err();
            assert!(why.contains(reason), "{why}");
        }
        assert!(read(&["email", "Email "], &["ada@example.com", "bob@example.com"]).is_err());
    }

    #[test]
    fn formulas_are_escaped() {
        for cell in ["=1+1", "+1@example.com", "-1", "@SUM(A1)", "\t1", "\r1", "\n1", "'=1", "''+1"] {
            assert_eq!(escape_formula(cell), format!("'{cell}"));
        }
        for cell in
            ["＝1+1", "＋1", "－1", "＠SUM(A1)", " =1", "\u{a0}=1", "\u{200b}=1", "\u{feff}' =1", "\u{200d}\u{b}+1"]
        {
            assert_eq!(escape_formula(cell), format!("'{cell}"));
        }
        for cell in ["", "'", "ada@example.com", "o'brien@example.com", "'tis", "a;b", "a\tb", "a-b;c"] {
            assert_eq!(escape_formula(cell), cell);
        }
        for (cell, escaped) in [
            ("a;=1+1", "a;'=1+1"),
            ("a\t@SUM(A1)", "a\t'@SUM(A1)"),
            ("a\n+1;-1", "a\n'+1;'-1"),
            ("a; =1;\u{200b}＝2", "a;' =1;'\u{200b}＝2"),
            ("a;\"=1\"", "a;'\"=1\""),
            ("\"=1\"", "'\"=1\""),
            ("=1;=2", "'=1;'=2"),
            ("\t=1", "'\t'=1"),
        ] {
            assert_eq!(escape_formula(cell), escaped);
        }
    }

    fn people() -> impl Strategy<Value = Person> {
        let email = "[a-z'=+-]{1,4}@example\\.com".prop_map(|typed| EmailAddress::parse(&typed).unwrap());
        let timestamp = (0..1_794_744_000_i64).prop_map(|seconds| Timestamp::from_unix_millis(seconds * 1000));
        let via = prop::sample::select(Via::ALL.to_vec());
        let source =
            prop::option::of("[=＝+@'\",;\ta-z\n \u{200b}]{1,8}".prop_map(|text| Source::parse(&text).unwrap()));
        let confirmed_at = prop::option::of(timestamp.clone());
        let opt_in = (timestamp.clone(), via, source, 0..=1i64, confirmed_at)
            .prop_map(|(at, via, source, wording, confirmed_at)| OptIn { at, via, source, wording, confirmed_at });
        let suppressed = prop::option::of(
            prop::sample::select(SuppressionReason::ALL.map(SuppressionReason::as_str).to_vec())
                .prop_filter_map("recorded", known_reason),
        );
        (email, timestamp, 0..=MAX_IMPORTED_DOWNLOADS, any::<bool>(), prop::option::of(opt_in), suppressed).prop_map(
            |(email, first_seen, downloads, waitlist, opt_in, suppressed)| Person {
                email,
                first_seen,
                downloads,
                waitlist,
                opt_in: opt_in.filter(|_| suppressed.is_none()),
                pending: None,
                suppressed,
            },
        )
    }

    proptest! {
        #[test]
        fn unescaping_reverses_escaping(cell in "['\"=+@a;\t\n-]{0,8}") {
            let escaped = escape_formula(&cell);
            prop_assert_eq!(unescape_formula(&escaped), cell);
        }

        #[test]
        fn a_person_is_unchanged_by_export_and_import(person in people()) {
            let mut file = csv::Writer::from_writer(Vec::new());
            file.write_record(COLUMNS).unwrap();
            file.write_record(to_cells(&person)).unwrap();
            let file = file.into_inner().unwrap();
            let mut reader = csv::Reader::from_reader(file.as_slice());
            let columns = Columns::parse(reader.headers().unwrap()).unwrap();
            let row = reader.records().next().unwrap().unwrap();
            prop_assert!(row.iter().all(|cell| !cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\n'])));
            let mut parts = row.iter().flat_map(|cell| cell.split(SEPARATORS).skip(1));
            prop_assert!(parts.all(|part| !part.starts_with(['=', '+', '-', '@'])));
            prop_assert_eq!(columns.parse_row(&row, NOW).unwrap(), person);
        }
    }
}
