//! Stores downloads and joins in batches, and returns for each what was known of the address before.
//!
//! The row of a person keeps the ids of the first download, the first join and the current opt-in. So the answer is exact
//! even across instances.

use std::collections::{BTreeMap, HashMap};

use super::connection::{BatchStatement, Store, StoreFailure, Transaction, Value};
use super::letters::{INSERT_CONSENTS, consent_row, wordings_batch};
use super::statistics::{counts_batch, sources_batch};
use crate::domain::mail::EmailAddress;
use crate::domain::signups::{KnownBefore, OptInRequest, SignupKind, SignupRecord};
use crate::domain::statistics::{CountedEvent, Counts, SourceCounts, counted_source};
use crate::domain::text::Source;
use crate::domain::time::Day;

/// On conflict, keeps the existing address as typed, first download, first join and opt-in. So `updates` turns the letter
/// on and never off.
macro_rules! upsert_people {
    ($returning:literal) => {
        BatchStatement::new(
            "address text, email text, mailbox text, at bigint, download text, joined text, opt_in text",
            concat!(
                "INSERT INTO people (address, email, mailbox, first_seen_at, first_download, first_join, opt_in) \
                 SELECT * FROM batch WHERE true ON CONFLICT (address) DO UPDATE SET \
                     first_download = COALESCE(people.first_download, excluded.first_download), \
                     first_join = COALESCE(people.first_join, excluded.first_join), \
                     opt_in = COALESCE(people.opt_in, excluded.opt_in)",
                $returning
            ),
        )
    };
}

const UPSERT_PEOPLE: BatchStatement = upsert_people!("");
const UPSERT_AND_RETURN_PEOPLE: BatchStatement =
    upsert_people!(" RETURNING address, first_download, first_join, opt_in");

/// The join has an order, so that SQLite looks up the few and does not read all people.
const SELECT_KNOWN_PEOPLE: BatchStatement = BatchStatement::new(
    "address text",
    "SELECT address, first_download, first_join, opt_in FROM batch CROSS JOIN people USING (address)",
);

const INSERT_SIGNUPS: BatchStatement = BatchStatement::new(
    "id text, address text, kind text, at bigint, via text, source text",
    "INSERT INTO signups (id, address, kind, at, via, source) SELECT * FROM batch",
);

/// The signups of one person in a batch, in their order, and the first of each kind.
#[derive(Default)]
struct PersonBatch<'a> {
    signups: Vec<(usize, &'a SignupRecord)>,
    download: Option<&'a SignupRecord>,
    join: Option<&'a SignupRecord>,
    /// An opt-in that counts at once.
    opt_in: Option<&'a SignupRecord>,
    /// An opt-in that waits for its confirmation.
    pending: Option<&'a SignupRecord>,
}

/// The ids in the row of a person, before the batch or after it. What the row did not have before, the batch has set.
#[derive(Default)]
struct StoredPerson {
    download: Option<String>,
    join: Option<String>,
    opt_in: Option<String>,
}

impl Store {
    /// Stores signups in one transaction, and returns for each what was known of the address before.
    pub(in crate::store) async fn insert_signups(
        &self,
        signups: &[SignupRecord],
    ) -> Result<Vec<KnownBefore>, StoreFailure> {
        let people = group_by_person(signups);
        let mut tx = self.begin().await?;
        let rows = people.iter().map(|(address, person)| person.row(address));
        let batches = match &tx {
            // No other transaction writes meanwhile, so nobody becomes known in between. New people return no row: the driver
            // hands over each row separately, and wakes the writer for it.
            Transaction::Sqlite(_) => {
                let addresses = people.keys().map(|address| [Value::from(*address)]);
                vec![SELECT_KNOWN_PEOPLE.of(addresses), UPSERT_PEOPLE.of(rows)]
            }
            Transaction::Postgres(_) => vec![UPSERT_AND_RETURN_PEOPLE.of(rows)],
        };
        let stored: HashMap<String, StoredPerson> = tx
            .run_batches(batches)
            .await?
            .all::<(String, Option<String>, Option<String>, Option<String>)>()?
            .into_iter()
            .map(|(address, download, join, opt_in)| (address, StoredPerson { download, join, opt_in }))
            .collect();
        let none = StoredPerson::default();
        let people: Vec<_> =
            people.iter().map(|(address, person)| (person, stored.get(*address).unwrap_or(&none))).collect();

        let opt_ins: Vec<_> = people
            .iter()
            .filter_map(|(person, stored)| person.opt_in.filter(|signup| signup.is_first(stored.opt_in.as_ref())))
            .collect();
        let pending: Vec<_> = people.iter().filter_map(|(person, _)| person.pending).collect();
        if !pending.is_empty() {
            tx.record_pending_opt_ins(&pending).await?;
        }
        let new_people = people.iter().filter(|(person, stored)| person.known_before(stored) == KnownBefore::default());
        let (counts, sources) = count_events(signups, new_people.filter_map(|(person, _)| person.first()), &opt_ins);
        tx.run_batches(vec![
            INSERT_SIGNUPS.of(signups.iter().map(signup_row)),
            wordings_batch(opt_ins.iter().copied().chain(pending)),
            INSERT_CONSENTS.of(opt_ins.iter().map(|signup| consent_row(signup))),
            sources_batch(&sources),
            counts_batch(&counts),
        ])
        .await?;
        tx.commit().await?;
        Ok(known_before_each(signups.len(), &people))
    }
}

fn signup_row(signup: &SignupRecord) -> [Value<'_>; 6] {
    let source = signup.source.as_ref().map(Source::as_str);
    let (kind, via) = (event(signup).as_str(), signup.via.as_str());
    [signup.id.into(), signup.email.key().into(), kind.into(), signup.at.into(), via.into(), source.into()]
}

const fn event(signup: &SignupRecord) -> CountedEvent {
    match signup.kind {
        SignupKind::Download { .. } => CountedEvent::Download,
        SignupKind::Join => CountedEvent::Join,
    }
}

impl<'a> PersonBatch<'a> {
    fn first(&self) -> Option<&'a SignupRecord> {
        self.signups.first().map(|(_, signup)| *signup)
    }

    fn row(&self, address: &'a str) -> [Value<'a>; 7] {
        let id = |signup: Option<&SignupRecord>| Value::from(signup.map(|signup| signup.id));
        let (email, at) = (self.first().map(|signup| &signup.email), self.first().map(|signup| signup.at));
        let (typed, mailbox) = (email.map(EmailAddress::as_typed), email.and_then(EmailAddress::other_mailbox));
        [address.into(), typed.into(), mailbox.into(), at.into(), id(self.download), id(self.join), id(self.opt_in)]
    }

    /// What was known before this batch.
    fn known_before(&self, stored: &StoredPerson) -> KnownBefore {
        let existed_before = |first: &Option<String>, ours: Option<&SignupRecord>| {
            first.is_some() && !ours.is_some_and(|signup| signup.is_first(first.as_ref()))
        };
        KnownBefore {
            downloaded: existed_before(&stored.download, self.download),
            joined: existed_before(&stored.join, self.join),
        }
    }
}

/// Sorted by address, so that concurrent transactions lock rows in the same order.
fn group_by_person(signups: &[SignupRecord]) -> BTreeMap<&str, PersonBatch<'_>> {
    let mut people = BTreeMap::<_, PersonBatch<'_>>::new();
    for (index, signup) in signups.iter().enumerate() {
        let person = people.entry(signup.email.key()).or_default();
        person.signups.push((index, signup));
        let first_of_kind = match signup.kind {
            SignupKind::Download { .. } => &mut person.download,
            SignupKind::Join => &mut person.join,
        };
        first_of_kind.get_or_insert(signup);
        match signup.kind {
            SignupKind::Download { opt_in: OptInRequest::Immediate } => person.opt_in.get_or_insert(signup),
            SignupKind::Download { opt_in: OptInRequest::Pending } => person.pending.get_or_insert(signup),
            SignupKind::Download { opt_in: OptInRequest::None } | SignupKind::Join => continue,
        };
    }
    people
}

/// What was known before each of `count` signups. An earlier signup of the same batch counts: the second of two equal
/// addresses is known.
fn known_before_each(count: usize, people: &[(&PersonBatch<'_>, &StoredPerson)]) -> Vec<KnownBefore> {
    let mut outputs = vec![KnownBefore::default(); count];
    for (person, stored) in people {
        let mut known = person.known_before(stored);
        for (index, signup) in &person.signups {
            outputs[*index] = known;
            match signup.kind {
                SignupKind::Download { .. } => known.downloaded = true,
                SignupKind::Join => known.joined = true,
            }
        }
    }
    outputs
}

/// Counts the signups, the first ones of new people and the opt-ins that took effect.
fn count_events<'a>(
    signups: &'a [SignupRecord],
    new_people: impl Iterator<Item = &'a SignupRecord>,
    opt_ins: &[&'a SignupRecord],
) -> (Counts, SourceCounts<'a>) {
    let signups = signups.iter().map(|signup| (event(signup), signup));
    let new_people = new_people.map(|signup| (CountedEvent::NewPerson, signup));
    let opt_ins = opt_ins.iter().map(|signup| (CountedEvent::OptIn, *signup));
    let (mut counts, mut sources) = (Counts::default(), SourceCounts::default());
    for (event, signup) in signups.chain(new_people).chain(opt_ins) {
        let day = Day::of(signup.at);
        counts.add_unnamed(day, event, Some(signup.via));
        sources.entry((day, counted_source(signup.source.as_ref()))).or_default().add(event, 1);
    }
    (counts, sources)
}
