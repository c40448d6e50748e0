//! What must not take longer the more people there are. PostgreSQL counts the rows that statements read; the plans of SQLite are
//! looked at where its statements are, in `src/store`.

use std::time::Duration;

use porchlight::config::RawSettings;
use porchlight::domain::letters::{Letter, RandomToken, RecipientFilter};
use porchlight::domain::paging::PageStart;
use porchlight::domain::people::{PeopleQuery, PeopleSearch};
use porchlight::store::Store;
use serde_json::json;

use crate::confirmations::confirming;
use crate::harness::{Database, Service, wait_until};

/// So many that PostgreSQL never reads a whole table where an index would do: it does with half as many.
const PEOPLE: i64 = 100_000;
/// How many pending opt-ins expire in a test.
const EXPIRED: i64 = 5_000;

/// People with an opt-in, of whom `{pending}` have not confirmed it yet.
const FILL: &str = "
    INSERT INTO people (address, email, first_seen_at, opt_in)
        SELECT 'p' || n || '@example.com', 'p' || n || '@example.com', {now}, CASE WHEN {pending} THEN NULL ELSE 'c' || n END
        FROM generate_series(1, {people}) AS n;
    INSERT INTO consents (id, address, at, via, wording)
        SELECT 'c' || n, 'p' || n || '@example.com', {now}, 'api', 1 FROM generate_series(1, {people}) AS n;
    INSERT INTO confirmations (address, consent, state, at, expires_at)
        SELECT 'p' || n || '@example.com', 'c' || n, 'pending', {now}, {now} + 1000 * n
        FROM generate_series(1, {people}) AS n WHERE {pending};
    INSERT INTO outbox (id, kind, state, at)
        SELECT 'c' || n, 'confirmation', 'sent', {now} FROM generate_series(1, {people}) AS n WHERE {pending};
    INSERT INTO unsubscribe_tokens (token, address, at)
        SELECT LPAD(CAST(n AS TEXT), 32, 'A'), 'p' || n || '@example.com', {now} FROM generate_series(1, {people}) AS n;
    ANALYZE";

/// The rows of these tables that all statements so far have read, by an index or without one. Connections report them within a
/// second after they become idle, and all at once. An index alone may have what a join needs, so its entries count, too.
async fn rows_read(database: &Database) -> i64 {
    let sum = "SELECT CAST(SUM(seq_tup_read) + (SELECT SUM(idx_tup_read) FROM pg_stat_user_indexes) AS BIGINT) \
               FROM pg_stat_user_tables \
               WHERE relname IN ('people', 'consents', 'confirmations', 'unsubscribe_tokens', 'letter_recipients', 'suppressions', 'outbox', 'signups', 'withdrawals')";
    database.number(sum).await
}

/// Waits until PostgreSQL has counted so many changes of a table.
async fn wait_for_changes(database: &Database, table: &str, column: &str, changes: i64) {
    let counted = format!("SELECT {column} FROM pg_stat_user_tables WHERE relname = '{table}'");
    wait_until("the statistics", async || database.number(&counted).await >= changes).await;
}

async fn filled(settings: RawSettings, pending: bool) -> (Service, Store) {
    let service = Service::start(settings, Database::migrated_postgres().await).await;
    let fill = FILL
        .replace("{now}", &service.clock.now().unix_millis().to_string())
        .replace("{pending}", &pending.to_string())
        .replace("{people}", &PEOPLE.to_string());
    service.database.execute(&fill).await;
    let filled = if pending { "confirmations" } else { "consents" };
    wait_for_changes(&service.database, filled, "n_tup_ins", PEOPLE).await;
    let store = service.database.store();
    (service, store)
}

#[tokio::test]
async fn an_opt_in_and_one_that_expires_read_few_rows_however_many_others_are_pending() {
    let (service, store) = filled(confirming(), true).await;
    let before = rows_read(&service.database).await;
    let order = json!({ "email": "ada@example.com", "updates": true });
    service.post("/api/download", &order).await.expect_ok();
    wait_for_changes(&service.database, "confirmations", "n_tup_ins", PEOPLE + 1).await;
    let read = rows_read(&service.database).await - before;
    assert!(read < 100, "an opt-in: {read} rows");

    let before = rows_read(&service.database).await;
    let later = service.clock.now().after(Duration::from_secs(EXPIRED.unsigned_abs()));
    store.prune_confirmations(later).await.expect("to be deleted");
    wait_for_changes(&service.database, "confirmations", "n_tup_del", EXPIRED).await;
    let read = rows_read(&service.database).await - before;
    assert!(read < 20 * EXPIRED, "those that expired: {read} rows");
    for table in ["confirmations", "consents"] {
        assert_eq!(service.database.count(table).await, PEOPLE + 1 - EXPIRED, "{table}");
    }
    store.close().await;
    service.stop().await;
}

#[tokio::test]
async fn a_page_of_people_reads_as_many_rows_as_it_has() {
    let (service, store) = filled(RawSettings::default(), false).await;
    // Each connection reports what it read when it ends.
    store.close().await;
    let find = |text: &str| Some(PeopleSearch::parse(text).expect("a search"));
    // Of the addresses with one beginning the first ten thousand are looked at.
    for (search, most) in [(None, 2_000), (find("@example.com"), 2_000), (find("p77"), 5_000), (find("p"), 35_000)] {
        let before = rows_read(&service.database).await;
        let store = service.database.store();
        let query = PeopleQuery { search: search.clone(), ..PeopleQuery::default() };
        let page = store.people_from(&query, &PageStart::Newest, 100).await.expect("a page");
        let start = PageStart::OlderThan(page[99].place());
        let next = store.people_from(&query, &start, 100).await.expect("a page");
        let back = store.people_from(&query, &PageStart::NewerThan(page[99].place()), 100).await.expect("a page");
        assert!(back.iter().rev().eq(page[..99].iter()), "{search:?}");
        assert_eq!((page.len(), next.len()), (100, 100), "{search:?}");
        assert!(next.iter().all(|person| !page.contains(person)), "{search:?}");
        store.close().await;
        wait_until("the statistics", async || rows_read(&service.database).await >= before + 200).await;
        let read = rows_read(&service.database).await - before;
        assert!(read < most, "{search:?}: {read} rows");
    }
    service.stop().await;
}

#[tokio::test]
async fn starting_a_letter_reads_each_recipient_a_few_times() {
    let (service, store) = filled(RawSettings::default(), false).await;
    let before = rows_read(&service.database).await;
    let forecast = store.letter_forecast(None, service.clock.now()).await.expect("a forecast");
    assert_eq!(forecast.recipients, PEOPLE.unsigned_abs());
    let (letter, now) = (Letter::parse("# News\n\nMore.\n").expect("a letter"), service.clock.now());
    store.prepare_letter(&letter).await.expect("a letter");
    let (mut after, mut bytes) = (String::new(), [0_u8; 20]);
    let mut numbers = 0_u64..;
    while let Some(page) = store.recipients_page(&after).await.expect("a page") {
        let token = |email| {
            bytes[..8].copy_from_slice(&numbers.next().expect("a number").to_be_bytes());
            (email, RandomToken::from_random(bytes))
        };
        let people: Vec<_> = page.people.into_iter().map(token).collect();
        store.record_recipients(&letter.id, &people, now).await.expect("to be recorded");
        after = page.last;
    }
    store.start_letter(&letter.id, false, now).await.expect("a start");
    let forecast = store.letter_forecast(Some(&letter.id), now).await.expect("a forecast");
    assert_eq!(forecast.recipients, PEOPLE.unsigned_abs());
    let (mut listed, mut after) = (0_usize, String::new());
    loop {
        let page = store
            .listed_recipients(&letter.id.hex(), Some(RecipientFilter::Waiting), &after, 1000)
            .await
            .expect("a page");
        let Some(last) = page.last() else { break };
        after.clone_from(&last.address);
        listed += page.len();
    }
    assert_eq!(listed as u64, PEOPLE.unsigned_abs());
    let counts = store.latest_letter().await.expect("a letter").expect("a started one").counts;
    assert_eq!(counts.recipients, PEOPLE.unsigned_abs());
    wait_for_changes(&service.database, "letter_recipients", "n_tup_ins", PEOPLE).await;
    // The connections report the rest when they end.
    store.close().await;
    wait_until("the statistics", async || rows_read(&service.database).await > before + 4 * PEOPLE).await;
    let read = rows_read(&service.database).await - before;
    assert!(read < 30 * PEOPLE, "{read} rows");
    service.stop().await;
}
