//! Imports people in one transaction. Existing people stay unchanged.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::domain::people::Person;
use crate::domain::signups::Via;
use crate::domain::text::Source;
use crate::domain::time::Timestamp;
use crate::store::connection::{BatchStatement, Store, StoreFailure, Value};

/// A person, and the ids of the rows to insert.
#[derive(Clone, Debug)]
pub struct ImportedPerson {
    pub person: Person,
    pub downloads: Vec<Uuid>,
    pub join: Option<Uuid>,
    pub opt_in: Option<Uuid>,
}

/// What an import changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// People who were not stored yet.
    pub added: u64,
    /// Mailboxes and addresses that were not suppressed yet.
    pub suppressed: u64,
}

/// Rows per statement. One person may have any number of downloads.
const BATCH_SIZE: usize = 1000;

const INSERT_PEOPLE: BatchStatement = BatchStatement::new(
    "address text, email text, mailbox text, at bigint, download text, joined text, opt_in text",
    "INSERT INTO people (address, email, mailbox, first_seen_at, first_download, first_join, opt_in) \
     SELECT * FROM batch WHERE true ON CONFLICT (address) DO NOTHING RETURNING address",
);

const INSERT_SIGNUPS: BatchStatement = BatchStatement::new(
    "id text, address text, kind text, at bigint, via text",
    "INSERT INTO signups (id, address, kind, at, via) SELECT * FROM batch",
);

const INSERT_CONSENTS: BatchStatement = BatchStatement::new(
    "id text, address text, at bigint, via text, source text, wording bigint, confirmed_at bigint",
    "INSERT INTO consents (id, address, at, via, source, wording, confirmed_at) SELECT * FROM batch",
);

const SUPPRESS: BatchStatement = BatchStatement::new(
    "hash text, at bigint, reason text",
    "INSERT INTO suppressions (hash, at, reason) SELECT * FROM batch WHERE true \
     ON CONFLICT (hash) DO NOTHING",
);

impl Store {
    /// Inserts the people who do not exist yet. All people who are suppressed in the list are
    /// suppressed, new or not.
    pub async fn import(&self, people: &[ImportedPerson], at: Timestamp) -> Result<Imported, StoreFailure> {
        // Sorted by address, so that concurrent transactions lock rows in the same order.
        let mut by_address = BTreeMap::new();
        for person in people {
            by_address.entry(person.person.email.key()).or_insert(person);
        }
        let unique: Vec<_> = by_address.values().copied().collect();
        let mut tx = self.begin().await?;
        let (key, mut imported) = (tx.address_hash_key().await?, Imported::default());
        for chunk in unique.chunks(BATCH_SIZE) {
            let rows = chunk.iter().map(|person| person.row()).collect();
            let new = tx.run_batch(INSERT_PEOPLE, rows).await?.column::<String>()?;
            let new: Vec<_> = new.iter().filter_map(|address| by_address.get(address.as_str()).copied()).collect();
            let mut signups = new.iter().flat_map(|person| person.signup_rows()).peekable();
            while signups.peek().is_some() {
                tx.run_batch(INSERT_SIGNUPS, signups.by_ref().take(BATCH_SIZE).collect()).await?;
            }
            let consents = new.iter().filter_map(|person| person.consent_row()).collect();
            tx.run_batch(INSERT_CONSENTS, consents).await?;
            imported.added += new.len() as u64;
        }
        // From the whole list: of an address that is in it twice, either row may say that it is suppressed.
        let suppressed: BTreeMap<_, _> = people
            .iter()
            .filter_map(|ImportedPerson { person, .. }| {
                let reason = person.suppressed?;
                Some((key.suppression_hash(&person.email, reason), reason))
            })
            .collect();
        let suppressed: Vec<_> = suppressed.iter().collect();
        for chunk in suppressed.chunks(BATCH_SIZE) {
            let rows = chunk.iter().map(|(hash, reason)| [(*hash).into(), at.into(), reason.as_str().into()]).collect();
            imported.suppressed += tx.run_batch(SUPPRESS, rows).await?.affected;
        }
        tx.commit().await?;
        // If no service is running, no other process checkpoints the large WAL of a long list.
        self.checkpoint().await?;
        Ok(imported)
    }
}

impl ImportedPerson {
    fn row(&self) -> [Value<'_>; 7] {
        let Person { email, first_seen, .. } = &self.person;
        let download = self.downloads.first().copied();
        let (address, typed, mailbox, seen) = (email.key(), email.as_typed(), email.other_mailbox(), *first_seen);
        let (join, opt_in) = (self.join, self.opt_in);
        [address.into(), typed.into(), mailbox.into(), seen.into(), download.into(), join.into(), opt_in.into()]
    }

    fn signup_rows(&self) -> impl Iterator<Item = [Value<'_>; 5]> {
        let Person { email, first_seen, .. } = &self.person;
        let downloads = self.downloads.iter().map(|id| (id, "download"));
        downloads.chain(self.join.iter().map(|id| (id, "join"))).map(|(id, kind)| {
            [(*id).into(), email.key().into(), kind.into(), (*first_seen).into(), Via::Import.as_str().into()]
        })
    }

    fn consent_row(&self) -> Option<[Value<'_>; 7]> {
        let opt_in = self.person.opt_in.as_ref()?;
        let (id, address, source) = (self.opt_in?, self.person.email.key(), opt_in.source.as_ref().map(Source::as_str));
        let (at, via) = (opt_in.at, opt_in.via.as_str());
        let (wording, confirmed_at) = (opt_in.wording, opt_in.confirmed_at);
        Some([id.into(), address.into(), at.into(), via.into(), source.into(), wording.into(), confirmed_at.into()])
    }
}
