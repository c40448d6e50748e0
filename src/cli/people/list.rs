//! Everybody, a page at a time, as lines or as JSON.

use serde_json::{Value, json};

use super::PeopleFailure;
use crate::cli::terminal::{List, row, visible, width};
use crate::cli::{CommandFailure, tell};
use crate::domain::email::EmailAddress;
use crate::domain::person::Person;
use crate::domain::plural::quantity;
use crate::store::Store;

/// So many are asked for at once, so that the longest list takes little memory and no long statement.
pub(super) const PAGE: usize = 1000;

/// Everybody in order of the address, a page at a time.
#[derive(Debug)]
pub(super) struct Pages<'a> {
    pub store: &'a Store,
    pub opted_in_only: bool,
    pub last: Option<EmailAddress>,
}

impl Pages<'_> {
    /// The next few; none when there are no more.
    pub(super) async fn next(&mut self) -> Result<Vec<Person>, PeopleFailure> {
        let page = self.store.people_page(self.opted_in_only, self.last.as_ref(), PAGE).await;
        let people = page.map_err(|failure| PeopleFailure::Read(failure.into()))?;
        self.last = people.last().map(|person| person.email.clone()).or(self.last.take());
        Ok(people)
    }
}

pub(super) async fn list(store: &Store, as_json: bool, limit: usize, updates: bool) -> Result<(), CommandFailure> {
    let mut pages = Pages { store, opted_in_only: updates, last: None };
    let width = width();
    let mut list = List::new(as_json, width.map(|_| heading(width)));
    let mut next = if limit == 0 { Vec::new() } else { pages.next().await? };
    while !next.is_empty() && list.length < limit {
        for person in next.iter().filter(|person| !updates || person.is_mailed()).take(limit - list.length) {
            if !list.add(|| in_list(person), || line(person, width)) {
                return Ok(());
            }
        }
        next = pages.next().await?;
    }
    list.end();
    if list.length == 0 && limit > 0 {
        tell("Nobody is there.");
    }
    Ok(())
}

fn in_list(person: &Person) -> Value {
    json!({
        "email": person.email.as_typed(),
        "updates": person.is_mailed(),
        "waitlist": person.waitlist,
        "downloads": person.downloads,
        "suppressed": person.suppressed.is_some(),
        "first_seen": person.first_seen.rfc3339(),
    })
}

fn line(person: &Person, width: Option<usize>) -> String {
    let state = match (person.suppressed, person.is_mailed()) {
        (Some(_), _) => "suppressed",
        (None, true) => "updates",
        (None, false) => "",
    };
    let waitlist = if person.waitlist { "waitlist" } else { "" };
    let downloads = format!("{:>15}", quantity(person.downloads, "download", "downloads"));
    in_columns([&person.first_seen.date(), &downloads, waitlist, state], &visible(person.email.as_typed()), width)
}

fn heading(width: Option<usize>) -> String {
    in_columns(["first seen", "      downloads", "waitlist", "updates"], "address", width)
}

/// Where there is no room, an address matters more than what is known of it.
fn in_columns(cells: [&str; 4], address: &str, width: Option<usize>) -> String {
    const WIDTHS: [usize; 4] = [10, 15, 8, 10];
    const ROOMY: usize = 72;
    let cells: Vec<_> = cells.map(str::to_owned).into_iter().zip(WIDTHS).collect();
    let shown = if width.is_none_or(|width| width >= ROOMY) { &cells[..] } else { &cells[..1] };
    row(shown, address, width)
}
