//! `porchlight people list`

use serde_json::{Value, json};

use crate::cli::failure::{Failure, OrFail};
use crate::cli::terminal::{ListPrinter, format_row, terminal_width};
use crate::domain::mail::EmailAddress;
use crate::domain::people::Person;
use crate::domain::text::{quantity, sanitize};
use crate::store::Store;

/// How many people are read or written at a time, which bounds memory and the length of a statement.
pub(super) const BATCH_SIZE: usize = 1000;

/// Reads everybody in the order of addresses, one batch at a time.
#[derive(Debug)]
pub(super) struct PeopleCursor<'a> {
    pub store: &'a Store,
    pub opted_in_only: bool,
    pub last: Option<EmailAddress>,
}

impl PeopleCursor<'_> {
    /// Returns the next batch, which is empty at the end.
    pub(super) async fn next(&mut self) -> Result<Vec<Person>, Failure> {
        let batch = self.store.people_page(self.opted_in_only, self.last.as_ref(), BATCH_SIZE).await;
        let people = batch.or_fail(|failure| format!("The list is incomplete: {failure}."))?;
        self.last = people.last().map(|person| person.email.clone()).or(self.last.take());
        Ok(people)
    }
}

pub(super) async fn list(store: &Store, mut list: ListPrinter, updates: bool) -> Result<(), Failure> {
    let mut cursor = PeopleCursor { store, opted_in_only: updates, last: None };
    let width = terminal_width();
    let heading = width.map(|_| columns(["first seen", "      downloads", "waitlist", "updates"], "address", width));
    while list.remaining() > 0 {
        let people = cursor.next().await?;
        if people.is_empty() {
            break;
        }
        for person in people.iter().filter(|person| !updates || person.receives_letter()).take(list.remaining()) {
            if let Some(heading) = &heading {
                list.heading(heading);
            }
            if !list.push(&to_json(person), &line(person, width)) {
                return Ok(());
            }
        }
    }
    list.finish("No people found.");
    Ok(())
}

fn to_json(person: &Person) -> Value {
    json!({
        "email": person.email.as_typed(),
        "updates": person.receives_letter(),
        "waitlist": person.waitlist,
        "downloads": person.downloads,
        "suppressed": person.suppressed.is_some(),
        "first_seen": person.first_seen.rfc3339(),
    })
}

fn line(person: &Person, width: Option<usize>) -> String {
    let state = match (person.suppressed, person.receives_letter()) {
        (Some(_), _) => "suppressed",
        (None, true) => "updates",
        (None, false) => "",
    };
    let waitlist = if person.waitlist { "waitlist" } else { "" };
    let downloads = format!("{:>15}", quantity(person.downloads, "download", "downloads"));
    columns([&person.first_seen.date(), &downloads, waitlist, state], &sanitize(person.email.as_typed()), width)
}

/// Formats a line. A narrow terminal shows only the first column and the address.
fn columns(cells: [&str; 4], address: &str, width: Option<usize>) -> String {
    const WIDTHS: [usize; 4] = [10, 15, 8, 10];
    const MIN_WIDTH_FOR_ALL: usize = 72;
    let visible = if width.is_none_or(|width| width >= MIN_WIDTH_FOR_ALL) { WIDTHS.len() } else { 1 };
    let cells: Vec<_> = cells.map(str::to_owned).into_iter().zip(WIDTHS).take(visible).collect();
    format_row(&cells, address, width)
}
