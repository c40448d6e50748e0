//! `porchlight people list`

use std::fmt::Display;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde_json::{Value, json};

use super::removal::start_time;
use crate::actions::{find_people, people_notes};
use crate::cli::failure::{Failure, OrFail};
use crate::cli::terminal::{ListPrinter, eprint_line, format_row, terminal_width};
use crate::domain::paging::PageStart;
use crate::domain::people::{PeopleQuery, PeopleSearch, Person, PersonState};
use crate::domain::text::{quantity, sanitize};
use crate::domain::time::Timestamp;
use crate::store::Store;

/// How many people are read or written at a time, which bounds memory and the length of a statement.
pub(super) const BATCH_SIZE: usize = 1000;

pub(super) const LIST_EXAMPLES: &str = "\
Examples:
  porchlight people list --limit 20
  porchlight people list --search @example.com
  porchlight people list --state pending --since 2026-11-01";

#[derive(Args, Debug)]
pub(in crate::cli) struct ListArguments {
    /// List only addresses that begin with TEXT, or those of a domain, such as @example.com
    #[arg(long, value_name = "TEXT", value_parser = PeopleSearch::parse)]
    search: Option<PeopleSearch>,
    /// List only people in this state
    #[arg(long, value_parser = state_parser())]
    state: Option<PersonState>,
    /// List only people who get the monthly letter, as `--state opted-in`
    #[arg(long, conflicts_with = "state")]
    updates: bool,
    /// List only people who were first seen at this time or later; a day or a time
    #[arg(long, value_name = "TIME", value_parser = start_time)]
    since: Option<Timestamp>,
    /// List at most N people
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn state_parser() -> impl TypedValueParser<Value = PersonState> {
    let values = PersonState::ALL.map(|state| PossibleValue::new(state.as_str()).help(meaning(state)));
    PossibleValuesParser::new(values).try_map(|name| PersonState::parse(&name).ok_or("it is not a state"))
}

const fn meaning(state: PersonState) -> &'static str {
    match state {
        PersonState::OptedIn => "gets the monthly letter",
        PersonState::Pending => "has not confirmed the opt-in yet",
        PersonState::Suppressed => "never gets mail",
        PersonState::Unsubscribed => "took the opt-in back, and has no other",
        PersonState::Waitlist => "joined the waitlist",
        PersonState::Downloaded => "downloaded the app",
    }
}

/// The sentence about a list of which a part cannot be read.
pub(super) fn incomplete(failure: impl Display) -> String {
    format!("The list is incomplete: {failure}.")
}

pub(super) async fn list(store: &Store, arguments: ListArguments) -> Result<(), Failure> {
    let ListArguments { search, state, updates, since, limit, json } = arguments;
    let query = PeopleQuery { search, since, state: if updates { Some(PersonState::OptedIn) } else { state } };
    let mut list = ListPrinter::new(json, limit);
    let width = terminal_width();
    let heading = width.map(|_| columns(["first seen", "      downloads", "waitlist", "updates"], "address", width));
    let (mut start, mut gave_up_at) = (PageStart::Newest, None);
    while list.remaining() > 0 {
        let wanted = BATCH_SIZE.min(list.remaining());
        let found = find_people(store, &query, &start, wanted).await.or_fail(incomplete)?;
        for person in &found.people {
            if let Some(heading) = &heading {
                list.heading(heading);
            }
            if !list.push(&to_json(person), &line(person, width)) {
                return Ok(());
            }
        }
        gave_up_at = found.gave_up_at;
        let Some(oldest) = found.people.last().filter(|_| found.people.len() == wanted) else { break };
        start = PageStart::OlderThan(oldest.place());
    }
    list.finish("No people found.");
    for note in people_notes(store, &query, gave_up_at).await.or_fail(incomplete)? {
        eprint_line(&note);
    }
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
    let states = [PersonState::Suppressed, PersonState::OptedIn, PersonState::Pending, PersonState::Unsubscribed];
    let state = match states.into_iter().find(|state| person.is(*state)) {
        Some(PersonState::OptedIn) => "updates",
        state => state.map(PersonState::as_str).unwrap_or_default(),
    };
    let waitlist = if person.waitlist { "waitlist" } else { "" };
    let downloads = format!("{:>15}", quantity(person.downloads, "download", "downloads"));
    columns([&person.first_seen.date(), &downloads, waitlist, state], &sanitize(person.email.as_typed()), width)
}

/// Formats a line. A narrow terminal shows only the first column and the address.
fn columns(cells: [&str; 4], address: &str, width: Option<usize>) -> String {
    const WIDTHS: [usize; 4] = [10, 15, 8, 12];
    const MIN_WIDTH_FOR_ALL: usize = 72;
    let visible = if width.is_none_or(|width| width >= MIN_WIDTH_FOR_ALL) { WIDTHS.len() } else { 1 };
    let cells: Vec<_> = cells.map(str::to_owned).into_iter().zip(WIDTHS).take(visible).collect();
    format_row(&cells, address, width)
}
