//! Converts a person to a CSV row and back, in the format that an export has.

use csv::StringRecord;

use super::cells::{Cells, Problem, escape_formula, parse_boolean, shorten};
use super::tools::{Standing, Tool};
use crate::domain::limits::MAX_IMPORTED_DOWNLOADS;
use crate::domain::people::{Person, SuppressionReason};
use crate::domain::signups::{EXTERNAL_WORDING, OptIn, Via};
use crate::domain::text::{Source, quantity};
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

/// The columns of a file, by their names in lower case.
#[derive(Debug)]
pub(super) struct Columns {
    names: Vec<String>,
    /// Whose export it is. `None`: it is in the format of [`COLUMNS`].
    pub tool: Option<&'static Tool>,
    /// What the name of the file says about everybody in it.
    standing: Standing,
}

impl Columns {
    /// Recognizes the format by the columns. A file that says itself who is opted in or suppressed is never that of another tool.
    pub(super) fn parse(header: &StringRecord, file_name: &str) -> Result<Self, String> {
        let names: Vec<String> =
            header.iter().map(|name| name.trim_start_matches('\u{feff}').trim().to_lowercase()).collect();
        let count = |column: &str| names.iter().filter(|name| *name == column).count();
        let tool = Tool::of(&names).filter(|_| count("updates") + count("suppressed") == 0);
        let known: Vec<_> = tool.map_or_else(|| COLUMNS.to_vec(), |tool| tool.columns().collect());
        if tool.is_none() && count("email") == 0 {
            return Err(missing_email_column(&names));
        }
        match known.into_iter().find(|column| count(column) > 1) {
            Some(column) => Err(format!("its first line names the column {column:?} twice")),
            None => Ok(Self { names, tool, standing: tool.map_or(Standing::OptedIn, |tool| tool.standing(file_name)) }),
        }
    }

    /// The columns that are ignored.
    pub(super) fn unknown(&self) -> impl Iterator<Item = String> {
        let is_known = |name: &str| match self.tool {
            Some(tool) => tool.columns().any(|column| column == name),
            None => COLUMNS.contains(&name),
        };
        self.names.iter().filter(move |name| !is_known(name)).map(|name| shorten(name))
    }

    /// Parses a row, or returns what is wrong with it.
    pub(super) fn parse_row(&self, row: &StringRecord, now: Timestamp) -> Result<Person, Problem> {
        if row.len() != self.names.len() {
            let cells = quantity(row.len() as u64, "cell", "cells");
            return Err(format!("it has {cells}, and the first line has {}", self.names.len()).into());
        }
        let cells = Cells { names: &self.names, row, now };
        match self.tool {
            Some(tool) => tool.person(&cells, self.standing),
            None => Row(cells).person(),
        }
    }
}

/// Returns the likely reason why no column is named `email`.
fn missing_email_column(names: &[String]) -> String {
    let separated_by =
        |separator: char| names.iter().any(|name| name.split(separator).skip(1).count() > 0 && name.contains("email"));
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

/// A row in the format of [`COLUMNS`].
struct Row<'a>(Cells<'a>);

impl Row<'_> {
    fn person(&self) -> Result<Person, Problem> {
        let Self(cells) = self;
        let opted_in_at = self.timestamp("opted_in_at")?;
        let opt_in = self.opt_in(opted_in_at.unwrap_or(cells.now))?;
        let reason = cells.parse("suppressed_reason", "is not one of not-me, no-mailbox and makers", known_reason)?;
        let is_not_number = format!("is not a number up to {MAX_IMPORTED_DOWNLOADS}");
        let is_allowed = |count: &u32| *count <= MAX_IMPORTED_DOWNLOADS;
        let downloads = cells.parse("downloads", &is_not_number, |text| text.parse().ok().filter(is_allowed))?;
        Ok(Person {
            email: cells.email("email")?,
            first_seen: self.timestamp("first_seen")?.or(opted_in_at).unwrap_or(cells.now),
            downloads: downloads.unwrap_or_default(),
            waitlist: self.boolean("waitlist")?,
            opt_in: self.boolean("updates")?.then_some(opt_in),
            pending: None,
            suppressed: self.boolean("suppressed")?.then_some(reason.unwrap_or(SuppressionReason::Makers)),
            withdrew: false,
        })
    }

    fn opt_in(&self, at: Timestamp) -> Result<OptIn, Problem> {
        let Self(cells) = self;
        let via = cells.parse("via", "is not one of site, api, mcp and import", Via::parse)?;
        let wording = cells.parse("wording", "is not the number of a wording", |text| {
            text.parse().ok().filter(|number| *number >= 0)
        })?;
        let source =
            Some(cells.cell("source")).filter(|text| !text.is_empty()).map(|text| Source::parse(&text)).transpose();
        Ok(OptIn {
            at,
            via: via.unwrap_or(Via::Import),
            source: source.map_err(|why| cells.invalid("source", &format!("is too long: {why}")))?,
            wording: wording.unwrap_or(EXTERNAL_WORDING),
            confirmed_at: self.timestamp("confirmed_at")?,
        })
    }

    fn boolean(&self, column: &str) -> Result<bool, Problem> {
        Ok(self.0.parse(column, "is neither true nor false", parse_boolean)?.unwrap_or_default())
    }

    fn timestamp(&self, column: &str) -> Result<Option<Timestamp>, Problem> {
        let timestamp = self.0.parse(column, "is not a time such as 2026-11-15T12:00:00Z", Timestamp::parse)?;
        if timestamp.is_some_and(|timestamp| timestamp > self.0.now) {
            return Err(self.0.invalid(column, "is in the future"));
        }
        Ok(timestamp)
    }
}

/// A reason that this version records.
fn known_reason(cell: &str) -> Option<SuppressionReason> {
    SuppressionReason::parse(cell).filter(|reason| *reason != SuppressionReason::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::mail::EmailAddress;
    use proptest::prelude::*;

    const NOW: Timestamp = Timestamp::from_unix_millis(1_794_744_000_000);

    fn read(header: &[&str], row: &[&str]) -> Result<Person, String> {
        let columns = Columns::parse(&StringRecord::from(header.to_vec()), "people.csv")?;
        columns.parse_row(&StringRecord::from(row.to_vec()), NOW).map_err(|problem| problem.to_string())
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
                withdrew: false,
            },
        )
    }

    proptest! {
        #[test]
        fn a_person_is_unchanged_by_export_and_import(person in people()) {
            let mut file = csv::Writer::from_writer(Vec::new());
            file.write_record(COLUMNS).unwrap();
            file.write_record(to_cells(&person)).unwrap();
            let file = file.into_inner().unwrap();
            let mut reader = csv::Reader::from_reader(file.as_slice());
            let columns = Columns::parse(reader.headers().unwrap(), "people.csv").unwrap();
            let row = reader.records().next().unwrap().unwrap();
            prop_assert!(row.iter().all(|cell| !cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\n'])));
            let mut parts = row.iter().flat_map(|cell| cell.split([';', '\t', '\r', '\n']).skip(1));
            prop_assert!(parts.all(|part| !part.starts_with(['=', '+', '-', '@'])));
            prop_assert_eq!(columns.parse_row(&row, NOW).unwrap(), person);
        }
    }
}
