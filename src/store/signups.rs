//! Stores downloads and joins in batches, and returns for each what was known of the address before.
//!
//! The two databases take different ways. SQLite has one writer at a time, so a transaction can look at the people first
//! and then insert what is new. In PostgreSQL other instances write at the same time, and every statement is a round trip:
//! one statement does everything.

mod kept_connection;
mod postgres;
mod sqlite;

use std::collections::BTreeMap;

use sqlx::Sqlite;
use sqlx::pool::PoolConnection;
use uuid::Uuid;

use self::kept_connection::KeptConnection;
use super::Store;
use super::postgres_pool::LimitedConnection;
use super::sources::{AdmittedSources, RefusedSources};
use super::statement::on_pool;
use super::writer::Record;
use crate::domain::calendar::Day;
use crate::domain::confirmation::OptInRequest;
use crate::domain::consent::Via;
use crate::domain::counts::counted_source;
use crate::domain::email::EmailAddress;
use crate::domain::signup::KnownBefore;
use crate::domain::text::Source;
use crate::domain::time::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignupKind {
    /// With `requires_release`, it is recorded only if there is a release to download.
    Download {
        opt_in: OptInRequest,
        requires_release: bool,
    },
    Join,
}

/// One download or join. Writing the same `id` twice has no further effect.
#[derive(Clone, Debug)]
pub struct SignupRecord {
    pub id: Uuid,
    pub kind: SignupKind,
    pub email: EmailAddress,
    pub source: Option<Source>,
    pub via: Via,
    pub at: Timestamp,
}

const OFFERS_RELEASE: &str = "SELECT EXISTS (SELECT 1 FROM releases WHERE withdrawn IS NULL AND prerelease = 0)";

/// What is remembered from batch to batch.
#[derive(Debug, Default)]
pub(super) struct SignupMemory {
    sources: AdmittedSources,
    sqlite: KeptConnection<PoolConnection<Sqlite>>,
    postgres: KeptConnection<LimitedConnection>,
}

impl SignupMemory {
    /// Gives the connection of the last batch back to its pool.
    pub(super) fn release_connection(&mut self) {
        (self.sqlite, self.postgres) = Default::default();
    }
}

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

impl<'a> PersonBatch<'a> {
    fn first(&self) -> Option<&'a SignupRecord> {
        self.signups.first().map(|(_, signup)| *signup)
    }
}

/// Signups, each with its index in the batch.
type Indexed<'a> = [(usize, &'a SignupRecord)];

/// Sorted by address, so that concurrent transactions lock rows in the same order.
type People<'a> = BTreeMap<&'a str, PersonBatch<'a>>;

impl Record for SignupRecord {
    /// What was known of the address before, or `None` if there is no release to download and nothing was recorded.
    type Output = Option<KnownBefore>;
    type Memory = SignupMemory;

    async fn insert(
        store: &Store,
        memory: &mut SignupMemory,
        signups: &[Self],
    ) -> Result<Vec<Option<KnownBefore>>, sqlx::Error> {
        let refused = admit_sources(store, &mut memory.sources, signups).await?;
        let signups: Vec<_> = signups.iter().enumerate().collect();
        match store {
            Store::Sqlite(pool) => sqlite::insert(pool, &mut memory.sqlite, signups, &refused).await,
            Store::Postgres(pool) => postgres::insert(pool, &mut memory.postgres, signups, &refused).await,
        }
    }
}

/// Admits the sources that are new, except those of signups that will not be recorded because there is no release.
async fn admit_sources(
    store: &Store,
    admitted: &mut AdmittedSources,
    signups: &[SignupRecord],
) -> Result<RefusedSources, sqlx::Error> {
    let unknown = admitted.unknown(signups.iter().map(SignupRecord::named_source));
    if unknown.is_empty() {
        return Ok(RefusedSources::default());
    }
    // The futures are in boxes here and below: they are large and rarely needed, and room for the largest is copied with
    // every batch.
    if !signups.iter().any(SignupRecord::requires_release) || offers_release(store).await? {
        return Box::pin(admitted.admit(store, &unknown)).await;
    }
    let recorded = signups.iter().filter(|signup| !signup.requires_release());
    let recorded = admitted.unknown(recorded.map(SignupRecord::named_source));
    let mut refused = Box::pin(admitted.admit(store, &recorded)).await?;
    refused.extend(unknown.difference(&recorded).copied());
    Ok(refused)
}

async fn offers_release(store: &Store) -> Result<bool, sqlx::Error> {
    Ok(on_pool!(store, |pool| sqlx::query_scalar(OFFERS_RELEASE).fetch_one(pool).await?))
}

impl SignupRecord {
    const fn requires_release(&self) -> bool {
        matches!(self.kind, SignupKind::Download { requires_release: true, .. })
    }

    /// Whether a mail has to be sent that asks for the confirmation.
    pub(super) const fn awaits_confirmation(&self) -> bool {
        matches!(self.kind, SignupKind::Download { opt_in: OptInRequest::Pending, .. })
    }

    const fn kind_name(&self) -> &'static str {
        match self.kind {
            SignupKind::Download { .. } => "download",
            SignupKind::Join => "join",
        }
    }

    /// The day and the source, which is empty if there is none.
    fn named_source(&self) -> (Day, &str) {
        (Day::of(self.at), counted_source(self.source.as_ref()))
    }

    /// The source that the signup is counted by, or `None` if the sources of its day are too many.
    fn counted_source(&self, refused: &RefusedSources) -> Option<&str> {
        let (day, source) = self.named_source();
        (!refused.contains(day, source)).then_some(source)
    }
}

/// The opt-ins of a batch that wait for their confirmation, in the order of addresses.
fn pending_opt_ins<'p, 'a: 'p>(people: impl Iterator<Item = &'p PersonBatch<'a>>) -> Vec<&'a SignupRecord> {
    people.filter_map(|person| person.pending).collect()
}

fn group_by_person<'a>(signups: &Indexed<'a>) -> People<'a> {
    let mut people = People::new();
    for &(index, signup) in signups {
        let person = people.entry(signup.email.key()).or_default();
        person.signups.push((index, signup));
        match signup.kind {
            SignupKind::Download { opt_in, .. } => {
                person.download.get_or_insert(signup);
                match opt_in {
                    OptInRequest::None => {}
                    OptInRequest::Immediate => {
                        person.opt_in.get_or_insert(signup);
                    }
                    OptInRequest::Pending => {
                        person.pending.get_or_insert(signup);
                    }
                }
            }
            SignupKind::Join => {
                person.join.get_or_insert(signup);
            }
        }
    }
    people
}

/// What was known before each of `count` signups, given what was known of people before the batch. An earlier signup of the
/// same batch counts: the second of two equal addresses is known.
fn known_before_each<'p, 'a: 'p>(
    count: usize,
    people: impl Iterator<Item = (&'p PersonBatch<'a>, KnownBefore)>,
) -> Vec<Option<KnownBefore>> {
    let mut outputs = vec![None; count];
    for (person, mut known) in people {
        for (index, signup) in &person.signups {
            outputs[*index] = Some(known);
            match signup.kind {
                SignupKind::Download { .. } => known.downloaded = true,
                SignupKind::Join => known.joined = true,
            }
        }
    }
    outputs
}
