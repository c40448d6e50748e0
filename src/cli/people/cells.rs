//! A person as the cells of one row, and back.
//!
//! A spreadsheet takes a cell for a formula that starts with one of a few characters. Such a cell is
//! written with an apostrophe before it, and read without.

use csv::StringRecord;

use crate::domain::consent::{OptIn, Via, WORDING, WORDING_ELSEWHERE};
use crate::domain::email::EmailAddress;
use crate::domain::person::Person;
use crate::domain::plural::quantity;
use crate::domain::suppression::SuppressionReason;
use crate::domain::text::Source;
use crate::domain::time::Timestamp;

pub(super) const COLUMNS: [&str; 11] = [
    "email",
    "first_seen",
    "downloads",
    "waitlist",
    "updates",
    "opted_in_at",
    "via",
    "source",
    "wording",
    "suppressed",
    "suppressed_reason",
];

/// What most spreadsheets write unless they are told otherwise.
pub(super) const NOT_UTF_8: &str = "it is not in UTF-8; save it as “CSV UTF-8”";

/// Most downloads of one person: each is written down by itself.
const MOST_DOWNLOADS: u32 = 10_000;

/// The row of a person. An opt-in beneath a suppression is not told: whoever reads the list elsewhere
/// shall not take it for one.
pub(super) fn cells(person: &Person) -> [String; COLUMNS.len()] {
    let opt_in = person.opt_in.as_ref().filter(|_| person.is_mailed());
    let of_opt_in = |cell: fn(&OptIn) -> String| opt_in.map(cell).unwrap_or_default();
    [
        person.email.as_typed().to_owned(),
        person.first_seen.rfc3339(),
        person.downloads.to_string(),
        person.waitlist.to_string(),
        person.is_mailed().to_string(),
        of_opt_in(|opt_in| opt_in.at.rfc3339()),
        of_opt_in(|opt_in| opt_in.via.as_str().to_owned()),
        of_opt_in(|opt_in| opt_in.source.as_ref().map(Source::as_str).unwrap_or_default().to_owned()),
        of_opt_in(|opt_in| opt_in.wording.to_string()),
        person.suppressed.is_some().to_string(),
        person.suppressed.map(SuppressionReason::as_str).unwrap_or_default().to_owned(),
    ]
    .map(|cell| defused(&cell))
}

/// Where the columns of a file are.
#[derive(Debug)]
pub(super) struct Columns {
    places: [Option<usize>; COLUMNS.len()],
    count: usize,
    /// What the file has besides.
    pub unknown: Vec<String>,
}

impl Columns {
    pub(super) fn of(header: &StringRecord) -> Result<Self, String> {
        let names: Vec<String> =
            header.iter().map(|name| name.trim_start_matches('\u{feff}').trim().to_lowercase()).collect();
        let place = |column: &str| names.iter().position(|name| name == column);
        if place("email").is_none() {
            return Err(without_email(&names));
        }
        for column in COLUMNS {
            if names.iter().filter(|name| *name == column).count() > 1 {
                return Err(format!("its first line names the column {column:?} twice"));
            }
        }
        let unknown = names.iter().filter(|name| !COLUMNS.contains(&name.as_str()));
        let unknown = unknown.map(|name| shortened(name)).collect();
        Ok(Self { places: COLUMNS.map(place), count: names.len(), unknown })
    }

    /// Reads a row; says what is wrong with it.
    pub(super) fn read(&self, row: &StringRecord, now: Timestamp) -> Result<Person, String> {
        if row.len() != self.count {
            let cells = quantity(row.len() as u64, "cell", "cells");
            return Err(format!("it has {cells}, and the first line has {}", self.count));
        }
        Row { columns: self, cells: row, now }.person()
    }
}

/// What to do about a file that is none of ours, as far as its first line tells.
fn without_email(names: &[String]) -> String {
    let separated_by = |mark: char| names.iter().any(|name| name.split(mark).any(|name| name.trim() == "email"));
    if names.iter().any(|name| name.contains('\0')) {
        return NOT_UTF_8.to_owned();
    }
    if separated_by(';') {
        return "its cells are separated by semicolons; save it with commas between them".to_owned();
    }
    if separated_by('\t') {
        return "its cells are separated by tabs; save it with commas between them".to_owned();
    }
    "its first line names no column \"email\"".to_owned()
}

/// As much of a cell as is needed to recognise it.
fn shortened(cell: &str) -> String {
    const ENOUGH: usize = 60;
    match cell.char_indices().nth(ENOUGH) {
        None => cell.to_owned(),
        Some((end, _)) => format!("{}…", &cell[..end]),
    }
}

struct Row<'a> {
    columns: &'a Columns,
    cells: &'a StringRecord,
    now: Timestamp,
}

impl<'a> Row<'a> {
    fn person(&self) -> Result<Person, String> {
        let opted_in_at = self.moment("opted_in_at")?;
        let opt_in = self.opt_in(opted_in_at.unwrap_or(self.now))?;
        let reason = self.parsed("suppressed_reason", SuppressionReason::Makers, SuppressionReason::parse);
        let reason = reason.map_err(|wrong| wrong("is none of not-me, no-mailbox and makers"))?;
        let email = EmailAddress::parse(self.cell("email"));
        let downloads = self.parsed("downloads", 0, |text| text.parse().ok().filter(|count| *count <= MOST_DOWNLOADS));
        Ok(Person {
            email: email.map_err(|why| self.wrong("email", &format!("is no address: {why}")))?,
            first_seen: self.moment("first_seen")?.or(opted_in_at).unwrap_or(self.now),
            downloads: downloads.map_err(|wrong| wrong(&format!("is no number up to {MOST_DOWNLOADS}")))?,
            waitlist: self.says("waitlist")?,
            opt_in: self.says("updates")?.then_some(opt_in),
            suppressed: self.says("suppressed")?.then_some(reason),
        })
    }

    fn opt_in(&self, at: Timestamp) -> Result<OptIn, String> {
        let of_ours = |wording: &i64| (WORDING_ELSEWHERE..=WORDING).contains(wording);
        let via = self.parsed("via", Via::Import, Via::parse);
        let wording = self.parsed("wording", WORDING_ELSEWHERE, |text| text.parse().ok().filter(of_ours));
        let source = Some(self.whole("source")).filter(|text| !text.is_empty()).map(Source::parse).transpose();
        Ok(OptIn {
            at,
            via: via.map_err(|wrong| wrong("is none of site, api, mcp and import"))?,
            source: source.map_err(|why| self.wrong("source", &format!("is too long: {why}")))?,
            wording: wording.map_err(|wrong| wrong("is no wording of ours"))?,
        })
    }

    fn whole(&self, column: &str) -> &'a str {
        let place = COLUMNS.iter().position(|name| *name == column).and_then(|index| self.columns.places[index]);
        armed(place.and_then(|place| self.cells.get(place)).unwrap_or_default())
    }

    fn cell(&self, column: &str) -> &'a str {
        self.whole(column).trim()
    }

    fn wrong(&self, column: &str, why: &str) -> String {
        format!("{column} is {:?}, which {why}", shortened(self.cell(column)))
    }

    /// What a cell says, or what an empty one stands for. The failure wants to be told why.
    fn parsed<T>(
        &self,
        column: &'static str,
        empty: T,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, impl FnOnce(&str) -> String> {
        let found = match self.cell(column) {
            "" => Some(empty),
            text => parse(text),
        };
        found.ok_or(|why: &str| self.wrong(column, why))
    }

    fn says(&self, column: &'static str) -> Result<bool, String> {
        self.parsed(column, false, yes_or_no).map_err(|wrong| wrong("is neither true nor false"))
    }

    fn moment(&self, column: &'static str) -> Result<Option<Timestamp>, String> {
        let moment = self.parsed(column, None, |text| Timestamp::parse(text).map(Some));
        let moment = moment.map_err(|wrong| wrong("is no time such as 2026-11-15T12:00:00Z"))?;
        if moment.is_some_and(|moment| moment > self.now) {
            return Err(self.wrong(column, "is yet to come"));
        }
        Ok(moment)
    }
}

fn yes_or_no(cell: &str) -> Option<bool> {
    match cell.to_lowercase().as_str() {
        "true" | "yes" | "y" | "1" => Some(true),
        "false" | "no" | "n" | "0" => Some(false),
        _ => None,
    }
}

/// Whether a spreadsheet would take it for a formula, or we for a cell that was defused.
fn is_formula(cell: &str) -> bool {
    cell.trim_start_matches('\'').starts_with(['=', '+', '-', '@', '\t', '\r', '\n'])
}

fn defused(cell: &str) -> String {
    if is_formula(cell) { format!("'{cell}") } else { cell.to_owned() }
}

fn armed(cell: &str) -> &str {
    cell.strip_prefix('\'').filter(|rest| is_formula(rest)).unwrap_or(cell)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Timestamp = Timestamp::from_unix_millis(1_794_744_000_000);

    fn read(header: &[&str], row: &[&str]) -> Result<Person, String> {
        Columns::of(&StringRecord::from(header.to_vec()))?.read(&StringRecord::from(row.to_vec()), NOW)
    }

    #[test]
    fn an_address_alone_is_somebody_who_asked_for_nothing() {
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
    fn a_bad_row_says_what_is_wrong_with_it() {
        let header = ["email", "downloads", "updates", "opted_in_at", "via", "suppressed_reason", "source"];
        let good = ["ada@example.com", "1", "true", "2026-01-02", "site", "makers", "a friend"];
        assert!(read(&header, &good).is_ok());
        let long = "x".repeat(33);
        for (place, cell, words) in [
            (0, "ada", "is no address"),
            (0, "", "is no address"),
            (1, "-1", "is no number up to 10000"),
            (1, "10001", "is no number up to 10000"),
            (2, "perhaps", "is neither true nor false"),
            (3, "last year", "is no time"),
            (3, "2026-11-16", "is yet to come"),
            (4, "fax", "is none of site, api, mcp and import"),
            (5, "spam", "is none of not-me, no-mailbox and makers"),
            (6, long.as_str(), "is too long"),
        ] {
            let mut row = good;
            row[place] = cell;
            let why = read(&header, &row).unwrap_err();
            assert!(why.starts_with(header[place]) && why.contains(words), "{why}");
        }
        assert!(read(&header, &good[..6]).unwrap_err().contains("it has 6 cells"));
        assert!(read(&["mail"], &["ada@example.com"]).is_err());
        assert!(read(&header[..1], &[&"x".repeat(5_000_000)]).unwrap_err().len() < 200, "nobody reads so much");
        for (header, words) in [
            ("email;updates", "semicolons"),
            ("Name\tEmail", "tabs"),
            ("e\0m\0a\0i\0l\0", "UTF-8"),
            ("mail;updates", "names no column"),
        ] {
            let why = read(&[header], &["ada@example.com;true"]).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
        assert!(read(&["email", "Email "], &["ada@example.com", "bob@example.com"]).is_err());
    }

    #[test]
    fn no_cell_is_a_formula() {
        for cell in ["=1+1", "+1@example.com", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "'=1", "''+1"] {
            assert_eq!(defused(cell), format!("'{cell}"));
        }
        for cell in ["", "'", "ada@example.com", "o'brien@example.com", "'tis"] {
            assert_eq!(defused(cell), cell);
        }
    }

    fn people() -> impl Strategy<Value = Person> {
        let email = "[a-z'=+-]{1,4}@example\\.com".prop_map(|typed| EmailAddress::parse(&typed).unwrap());
        let moment = (0..1_794_744_000_i64).prop_map(|seconds| Timestamp::from_unix_millis(seconds * 1000));
        let via = prop::sample::select(Via::ALL.to_vec());
        let source = prop::option::of("[=+@'\",;a-z\n ]{1,8}".prop_map(|text| Source::parse(&text).unwrap()));
        let opt_in = (moment.clone(), via, source, 0..=WORDING).prop_map(|(at, via, source, wording)| OptIn {
            at,
            via,
            source,
            wording,
        });
        let suppressed = prop::option::of(prop::sample::select(SuppressionReason::ALL.to_vec()));
        (email, moment, 0..=MOST_DOWNLOADS, any::<bool>(), prop::option::of(opt_in), suppressed).prop_map(
            |(email, first_seen, downloads, waitlist, opt_in, suppressed)| Person {
                email,
                first_seen,
                downloads,
                waitlist,
                opt_in: opt_in.filter(|_| suppressed.is_none()),
                suppressed,
            },
        )
    }

    proptest! {
        #[test]
        fn a_person_survives_the_way_out_and_in_again(person in people()) {
            let mut file = csv::Writer::from_writer(Vec::new());
            file.write_record(COLUMNS).unwrap();
            file.write_record(cells(&person)).unwrap();
            let file = file.into_inner().unwrap();
            let mut reader = csv::Reader::from_reader(file.as_slice());
            let columns = Columns::of(reader.headers().unwrap()).unwrap();
            let row = reader.records().next().unwrap().unwrap();
            prop_assert!(row.iter().all(|cell| !cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\n'])));
            prop_assert_eq!(columns.read(&row, NOW).unwrap(), person);
        }

        #[test]
        fn what_is_defused_is_read_as_it_was(cell in "['=+@a\t\n-]{0,6}") {
            let defused = defused(&cell);
            prop_assert_eq!(armed(&defused), cell);
        }
    }
}
