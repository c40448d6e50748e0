//! Stores signups in PostgreSQL: one statement, so one round trip, in a transaction of its own.

use std::collections::HashSet;

use sqlx::postgres::PgConnection;
use sqlx::{Connection, Executor, Postgres};
use uuid::Uuid;

use super::kept_connection::KeptConnection;
use super::{Indexed, People, PersonBatch, SignupRecord, group_by_person, known_before_each, pending_opt_ins};
use crate::domain::calendar::Day;
use crate::domain::consent;
use crate::domain::signup::KnownBefore;
use crate::domain::text::Source;
use crate::store::StoreFailure;
use crate::store::confirmations::record_pending_opt_ins;
use crate::store::postgres_pool::{LimitedConnection, PostgresPool};
use crate::store::sources::RefusedSources;
use crate::store::statement::Statement;

/// Inserts nothing if the batch requires a release (`$1`) and there is none.
///
/// `upserted`: on conflict, keeps the existing address as typed, first download, first join and opt-in. So `updates` turns
/// the letter on and never off. An id in the row that is not from this batch is older than it.
///
/// `counted`: the signups, the first ones of new people and the opt-ins that took effect. A repeated write inserts no event
/// and must not be counted again. The rows of `counts` and `sources` are not touched, because every instance would wait for
/// them until the commit of another; see `store/pending_counts.rs`.
///
/// Returns the number of people, and the addresses of those who had downloaded or joined before (`already` in the API).
const RECORD_SIGNUPS: &str = "\
WITH person AS (
    SELECT * FROM unnest($2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[])
        AS person (address, email, at, download, joined, opt_in, first)
    WHERE NOT $1 OR EXISTS (SELECT 1 FROM releases WHERE withdrawn IS NULL AND prerelease = 0)
), signup AS (
    SELECT * FROM unnest($9::text[], $10::text[], $11::text[], $12::bigint[], $13::text[], $14::text[], $15::bigint[],
                         $16::text[], $17::bigint[])
        AS signup (id, address, kind, at, via, source, from_program, counted_source, day)
    WHERE EXISTS (SELECT 1 FROM person)
), upserted AS (
    INSERT INTO people (address, email, first_seen_at, first_download, first_join, opt_in)
    SELECT address, email, at, download, joined, opt_in FROM person
    ON CONFLICT (address) DO UPDATE SET
        first_download = COALESCE(people.first_download, excluded.first_download),
        first_join = COALESCE(people.first_join, excluded.first_join),
        opt_in = COALESCE(people.opt_in, excluded.opt_in)
    RETURNING address, first_download, first_join, opt_in
), known AS (
    SELECT person.address, person.first, person.opt_in,
        upserted.first_download IS DISTINCT FROM person.download AS downloaded,
        upserted.first_join IS DISTINCT FROM person.joined AS joined,
        upserted.opt_in = person.opt_in AS opts_in
    FROM upserted JOIN person ON person.address = upserted.address
), inserted AS (
    INSERT INTO events (id, address, kind, at, via, source)
    SELECT id, address, kind, at, via, source FROM signup
    ON CONFLICT (id) DO NOTHING RETURNING id
), consented AS (
    INSERT INTO consents (id, address, at, via, source, wording, from_program)
    SELECT signup.id, signup.address, signup.at, signup.via, signup.source, $18, signup.from_program
    FROM known JOIN signup ON signup.id = known.opt_in WHERE known.opts_in
    ON CONFLICT (id) DO NOTHING
), counted AS (
    INSERT INTO pending_counts (day, via, source, downloads, people, opt_ins, joins)
    SELECT signup.day, signup.via, signup.counted_source,
        COUNT(*) FILTER (WHERE signup.kind = 'download'),
        COUNT(*) FILTER (WHERE signup.id = known.first AND NOT known.downloaded AND NOT known.joined),
        COUNT(*) FILTER (WHERE signup.id = known.opt_in AND known.opts_in),
        COUNT(*) FILTER (WHERE signup.kind = 'join')
    FROM signup JOIN known ON known.address = signup.address
    WHERE EXISTS (SELECT 1 FROM inserted)
    GROUP BY signup.day, signup.via, signup.counted_source
)
SELECT COUNT(*), array_agg(address) FILTER (WHERE downloaded), array_agg(address) FILTER (WHERE joined) FROM known";

/// The number of people, and the addresses of those who had downloaded or joined before.
type Known = (i64, Option<Vec<String>>, Option<Vec<String>>);

pub(super) async fn insert(
    pool: &PostgresPool,
    kept: &mut KeptConnection<LimitedConnection>,
    mut signups: Vec<(usize, &SignupRecord)>,
    refused: &RefusedSources,
) -> Result<Vec<Option<KnownBefore>>, sqlx::Error> {
    let (count, requires_release) = (signups.len(), signups.iter().any(|(_, signup)| signup.requires_release()));
    let mut people = group_by_person(&signups);
    let mut known = record(pool, kept, &signups, &people, refused, requires_release).await?;
    if requires_release && known.0 == 0 {
        signups.retain(|(_, signup)| !signup.requires_release());
        if signups.is_empty() {
            return Ok(vec![None; count]);
        }
        people = group_by_person(&signups);
        known = record(pool, kept, &signups, &people, refused, false).await?;
    }
    let [downloaded, joined] = [known.1, known.2].map(|some| HashSet::<String>::from_iter(some.unwrap_or_default()));
    let known_before =
        |address: &str| KnownBefore { downloaded: downloaded.contains(address), joined: joined.contains(address) };
    Ok(known_before_each(count, people.iter().map(|(address, person)| (person, known_before(address)))))
}

/// Writes on the connection that was kept. If that one is lost, the write is repeated on another, which has no further effect
/// if it was stored already.
async fn record(
    pool: &PostgresPool,
    kept: &mut KeptConnection<LimitedConnection>,
    signups: &Indexed<'_>,
    people: &People<'_>,
    refused: &RefusedSources,
    requires_release: bool,
) -> Result<Known, sqlx::Error> {
    if pool.has_pooler() {
        return record_in_transaction(pool, signups, people, refused, requires_release).await;
    }
    if let Some(mut kept_before) = kept.take().filter(|kept| kept.limit.is_current()) {
        let LimitedConnection { connection, limit } = &mut kept_before;
        match limit.apply(record_on(connection, signups, people, refused, requires_release)).await {
            Err(error) if StoreFailure::is_lost_session(&error) => {}
            Ok(known) => {
                kept.keep(kept_before);
                return Ok(known);
            }
            Err(error) => return Err(error),
        }
    }
    let LimitedConnection { mut connection, mut limit } = Box::pin(pool.acquire()).await?;
    let known = limit.apply(record_on(&mut connection, signups, people, refused, requires_release)).await?;
    kept.keep(LimitedConnection { connection, limit });
    Ok(known)
}

/// Behind a pooler no session is kept.
async fn record_in_transaction(
    pool: &PostgresPool,
    signups: &Indexed<'_>,
    people: &People<'_>,
    refused: &RefusedSources,
    requires_release: bool,
) -> Result<Known, sqlx::Error> {
    Box::pin(async {
        let mut tx = pool.begin().await?;
        let known = record_signups(&mut *tx, signups, people, refused, requires_release).await?;
        let pending = pending_opt_ins(people.values());
        if known.0 > 0 && !pending.is_empty() {
            record_pending_opt_ins!(tx, |statement: Statement| statement.postgres, pending);
        }
        tx.commit().await?;
        Ok(known)
    })
    .await
}

/// Opt-ins that wait for their confirmation take statements of their own, in one transaction with their signups.
async fn record_on(
    connection: &mut PgConnection,
    signups: &Indexed<'_>,
    people: &People<'_>,
    refused: &RefusedSources,
    requires_release: bool,
) -> Result<Known, sqlx::Error> {
    let pending = pending_opt_ins(people.values());
    if pending.is_empty() {
        return record_signups(connection, signups, people, refused, requires_release).await;
    }
    Box::pin(async {
        let mut tx = connection.begin().await?;
        let known = record_signups(&mut *tx, signups, people, refused, requires_release).await?;
        if known.0 > 0 {
            record_pending_opt_ins!(tx, |statement: Statement| statement.postgres, pending);
        }
        tx.commit().await?;
        Ok(known)
    })
    .await
}

async fn record_signups<'c>(
    connection: impl Executor<'c, Database = Postgres>,
    signups: &Indexed<'_>,
    people: &People<'_>,
    refused: &RefusedSources,
    requires_release: bool,
) -> Result<Known, sqlx::Error> {
    let ids = |id: fn(&PersonBatch<'_>) -> Option<Uuid>| -> Vec<_> {
        people.values().map(|person| id(person).map(|id| id.to_string())).collect()
    };
    let first = || people.values().filter_map(PersonBatch::first);
    let signups = || signups.iter().map(|(_, signup)| *signup);
    sqlx::query_as(RECORD_SIGNUPS)
        .bind(requires_release)
        .bind(people.keys().copied().collect::<Vec<_>>())
        .bind(first().map(|signup| signup.email.as_typed()).collect::<Vec<_>>())
        .bind(first().map(|signup| signup.at.unix_millis()).collect::<Vec<_>>())
        .bind(ids(|person| person.download.map(|signup| signup.id)))
        .bind(ids(|person| person.join.map(|signup| signup.id)))
        .bind(ids(|person| person.opt_in.map(|signup| signup.id)))
        .bind(ids(|person| person.first().map(|signup| signup.id)))
        .bind(signups().map(|signup| signup.id.to_string()).collect::<Vec<_>>())
        .bind(signups().map(|signup| signup.email.key()).collect::<Vec<_>>())
        .bind(signups().map(SignupRecord::kind_name).collect::<Vec<_>>())
        .bind(signups().map(|signup| signup.at.unix_millis()).collect::<Vec<_>>())
        .bind(signups().map(|signup| signup.via.as_str()).collect::<Vec<_>>())
        .bind(signups().map(|signup| signup.source.as_ref().map(Source::as_str)).collect::<Vec<_>>())
        .bind(signups().map(|signup| i64::from(signup.via.is_program())).collect::<Vec<_>>())
        .bind(signups().map(|signup| signup.counted_source(refused)).collect::<Vec<_>>())
        .bind(signups().map(|signup| Day::of(signup.at).number()).collect::<Vec<_>>())
        .bind(consent::WORDING)
        .fetch_one(connection)
        .await
}
