//! Reads people page by page: everybody in the order of addresses, or the newest first.
//!
//! A page is chosen over one index before anything is joined to it, so no statement reads more people than a page has, except
//! that a search for a domain walks the newest ones until the page is full. States and domains have no indexes: whoever signs up
//! would pay for what makers ask now and then.

use crate::domain::limits::MAX_SEARCHED_PEOPLE;
use crate::domain::mail::EmailAddress;
use crate::domain::paging::PageStart;
use crate::domain::people::{PeopleQuery, PeopleSearch, Person, PersonPlace};
use crate::domain::signups::PendingOptIn;
use crate::domain::time::Timestamp;
use crate::store::connection::{Rows, Statement, Store, StoreFailure, from_row_struct, values};

use super::records::parse_opt_in;

/// Everything about the people of a page, which `$page` chooses.
macro_rules! select_people {
    ($page:expr, $order:expr) => {
        concat!(
            "SELECT p.address, p.email, p.first_seen_at, p.first_join, c.at, c.via, c.source, c.wording, c.confirmed_at, \
                 w.at AS pending_since, f.asked_at, \
                 (SELECT COUNT(*) FROM signups s WHERE s.address = p.address AND s.kind = 'download') AS downloads, \
                 (SELECT COUNT(*) FROM withdrawals t WHERE t.address = p.address) AS withdrawals \
             FROM (SELECT address, email, first_seen_at, first_join, opt_in FROM ",
            $page,
            ") p LEFT JOIN consents c ON c.id = p.opt_in \
                 LEFT JOIN confirmations f ON f.address = p.address AND f.state NOT IN ('confirmed', 'declined') \
                 LEFT JOIN consents w ON w.id = f.consent ORDER BY ",
            $order
        )
    };
}

const SELECT_BY_ADDRESS: &str = select_people!("people WHERE address > $1 ORDER BY address LIMIT $2", "p.address");

/// The people on one side of the time `$1` and the address `$2`, since `$3`.
macro_rules! beside {
    ($people:literal, $condition:literal, $side:literal, $order:literal) => {
        concat!(
            $people,
            " WHERE (first_seen_at, address) ",
            $side,
            " ($1, $2) AND first_seen_at >= $3 ",
            $condition,
            "ORDER BY first_seen_at",
            $order,
            ", address",
            $order,
            " LIMIT $4"
        )
    };
}

macro_rules! select_sorted {
    ($page:expr, $order:literal) => {
        select_people!($page, concat!("p.first_seen_at", $order, ", p.address", $order))
    };
}

/// Whoever has another domain is read in the index alone, which has the addresses.
macro_rules! select_of_domain {
    ($condition:literal, $side:literal, $order:literal) => {
        select_sorted!(
            concat!("people WHERE address IN (SELECT address FROM ", beside!("people", $condition, $side, $order), ")"),
            $order
        )
    };
}

/// The pages of everybody and of each search on one side of a person.
struct Pages {
    all: &'static str,
    of_domain: Statement,
    /// From the address `$5` to before `$6`, of which the first `$7` are looked at.
    of_range: &'static str,
}

macro_rules! pages {
    ($side:literal, $order:literal) => {
        Pages {
            all: select_sorted!(beside!("people", "", $side, $order), $order),
            of_domain: Statement {
                sqlite: select_of_domain!("AND substr(address, instr(address, '@') + 1) = $5 ", $side, $order),
                postgres: select_of_domain!("AND split_part(address, '@', 2) = $5 ", $side, $order),
            },
            of_range: select_sorted!(
                beside!(
                    "(SELECT address, email, first_seen_at, first_join, opt_in FROM people WHERE address >= $5 \
                      AND address < $6 ORDER BY address LIMIT $7) AS range",
                    "",
                    $side,
                    $order
                ),
                $order
            ),
        }
    };
}

const OLDER: Pages = pages!("<", " DESC");

const NEWER: Pages = pages!(">", "");

const COUNT_RANGE: &str =
    "SELECT COUNT(*) FROM (SELECT 1 FROM people WHERE address >= $1 AND address < $2 LIMIT $3) AS range";

from_row_struct! {
    struct PersonRow {
        address: String,
        email: String,
        first_seen_at: Timestamp,
        first_join: Option<String>,
        at: Option<Timestamp>,
        via: Option<String>,
        source: Option<String>,
        wording: Option<i64>,
        confirmed_at: Option<Timestamp>,
        pending_since: Option<Timestamp>,
        asked_at: Option<Timestamp>,
        downloads: i64,
        withdrawals: i64,
    }
}

impl Store {
    /// Returns up to `limit` people that follow `after` in the order of addresses.
    pub async fn people_page(&self, after: Option<&EmailAddress>, limit: usize) -> Result<Vec<Person>, StoreFailure> {
        let after = after.map_or("", EmailAddress::key);
        self.read_people(self.run(SELECT_BY_ADDRESS, values![after, limit]).await?).await
    }

    /// Returns up to `limit` people whom the query means, in any state, in the order in which they follow the start. Of the addresses
    /// with one beginning, the first [`MAX_SEARCHED_PEOPLE`] are looked at.
    pub async fn people_from(
        &self,
        PeopleQuery { search, since, .. }: &PeopleQuery,
        start: &PageStart<PersonPlace>,
        limit: usize,
    ) -> Result<Vec<Person>, StoreFailure> {
        let (pages, time, address) = match start {
            PageStart::Newest => (&OLDER, i64::MAX, ""),
            PageStart::OlderThan(place) => (&OLDER, place.first_seen.unix_millis(), place.address.as_str()),
            PageStart::NewerThan(place) => (&NEWER, place.first_seen.unix_millis(), place.address.as_str()),
        };
        let since = since.map_or(i64::MIN, Timestamp::unix_millis);
        let rows = match search {
            None => self.run(pages.all, values![time, address, since, limit]).await?,
            Some(PeopleSearch::Domain(domain)) => {
                self.run(pages.of_domain, values![time, address, since, limit, domain]).await?
            }
            Some(PeopleSearch::Beginning(text)) => {
                let values = values![time, address, since, limit, text, end_of(text), MAX_SEARCHED_PEOPLE];
                self.run(pages.of_range, values).await?
            }
        };
        self.read_people(rows).await
    }

    /// Whether more addresses begin with this text than [`Self::people_from`] looks at.
    pub async fn has_too_many_people(&self, beginning: &str) -> Result<bool, StoreFailure> {
        let values = values![beginning, end_of(beginning), MAX_SEARCHED_PEOPLE + 1];
        let (people,): (i64,) = self.run(COUNT_RANGE, values).await?.one()?;
        Ok(people > MAX_SEARCHED_PEOPLE)
    }

    async fn read_people(&self, rows: Rows) -> Result<Vec<Person>, StoreFailure> {
        let mut people: Vec<_> = rows.all()?.into_iter().map(parse_person).collect();
        let suppressions = self.suppressions(people.iter().map(|person| &person.email)).await?;
        for person in &mut people {
            person.suppressed = suppressions.get(&person.email).map(|(_, reason)| reason);
        }
        Ok(people)
    }
}

/// What comes after every normalized address that begins with this text: such addresses are in ASCII.
fn end_of(beginning: &str) -> String {
    format!("{beginning}\u{7f}")
}

fn parse_person(row: PersonRow) -> Person {
    let opt_in = match (row.at, row.via, row.wording) {
        (Some(at), Some(via), Some(wording)) => Some(parse_opt_in(at, &via, row.source, wording, row.confirmed_at)),
        _ => None,
    };
    Person {
        email: EmailAddress::from_stored(row.email, row.address),
        first_seen: row.first_seen_at,
        downloads: u32::try_from(row.downloads).unwrap_or(u32::MAX),
        waitlist: row.first_join.is_some(),
        opt_in,
        pending: row.pending_since.map(|since| PendingOptIn { since, asked_at: row.asked_at }),
        suppressed: None,
        withdrew: row.withdrawals > 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::connection::tests::{empty_store, plan};

    #[tokio::test]
    async fn no_page_of_the_list_reads_a_whole_table() {
        let (_folder, store) = empty_store().await;
        for (statement, search, sorts) in [
            (SELECT_BY_ADDRESS.into(), "PRIMARY KEY (address>?)", false),
            (OLDER.all.into(), "INDEX people_by_first_seen (first_seen_at>? AND (first_seen_at,address)<", false),
            (NEWER.all.into(), "INDEX people_by_first_seen (", false),
            (
                OLDER.of_domain,
                "COVERING INDEX people_by_first_seen (first_seen_at>? AND (first_seen_at,address)<",
                true,
            ),
            (NEWER.of_domain, "COVERING INDEX people_by_first_seen (", true),
            (OLDER.of_range.into(), "PRIMARY KEY (address>? AND address<?)", true),
            (NEWER.of_range.into(), "PRIMARY KEY (address>? AND address<?)", true),
            (COUNT_RANGE.into(), "PRIMARY KEY (address>? AND address<?)", false),
        ] {
            let plan = plan(&store, statement).await;
            assert!(plan.contains(&format!("SEARCH people USING {search}")), "{plan}");
            // The page, and the range that it is from, are scanned, and the page is sorted.
            let page = plan.split("SCAN p\n").next().unwrap();
            assert_eq!(page.contains("TEMP B-TREE"), sorts, "{plan}");
            for line in plan.lines().filter(|line| line.starts_with("SCAN ")) {
                assert!(["SCAN p", "SCAN range"].contains(&line), "{plan}");
            }
        }
    }
}
