//! For unit tests of statements: an empty database, and how SQLite runs a statement on it.

use super::{Database, Statement, Store};

/// The folder is removed when it is dropped.
pub(in crate::store) async fn empty_store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&Database::Sqlite(folder.path().join("porchlight.db"))).unwrap();
    store.migrate().await.unwrap();
    (folder, store)
}

/// The plan of a statement in SQLite, with a line for each table that is read. PostgreSQL is asked in
/// `tests/service/large_lists.rs`.
pub(in crate::store) async fn plan(store: &Store, statement: impl Into<Statement>) -> String {
    let text = format!("EXPLAIN QUERY PLAN {}", statement.into().sqlite);
    let mut tx = store.begin().await.unwrap();
    let rows: Vec<(i64, i64, i64, String)> = tx.run_text(text, &[]).await.unwrap().all().unwrap();
    rows.into_iter().map(|(.., line)| line + "\n").collect()
}
