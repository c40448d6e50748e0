//! The migrations of both databases, embedded in the program.
//!
//! `migrations/sqlite/0002_releases.sql` is version 2 of the SQLite schema, "releases". `sqlx::migrate!` would read the
//! same files, but it compiles the whole of sqlx a second time for the macro.

use std::sync::LazyLock;

use rust_embed::RustEmbed;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{AssertSqlSafe, SqlSafeStr};

pub(super) static SQLITE_MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| embedded("sqlite/"));
pub(super) static POSTGRES_MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| embedded("postgres/"));

/// The SQLite migrations up to and including `version`.
pub(super) fn migrations_up_to(version: i64) -> Migrator {
    let migrations = SQLITE_MIGRATIONS.iter().filter(|migration| migration.version <= version);
    Migrator::with_migrations(migrations.cloned().collect())
}

#[derive(RustEmbed)]
#[folder = "migrations"]
struct Files;

fn embedded(folder: &str) -> Migrator {
    Migrator::with_migrations(Files::iter().filter_map(|path| migration(folder, &path)).collect())
}

/// Returns `None` for a file of another folder.
fn migration(folder: &str, path: &str) -> Option<Migration> {
    let (version, description) = path.strip_prefix(folder)?.strip_suffix(".sql")?.split_once('_')?;
    let sql = String::from_utf8(Files::get(path)?.data.into_owned()).ok()?;
    Some(Migration::new(
        version.parse().ok()?,
        description.replace('_', " ").into(),
        MigrationType::Simple,
        AssertSqlSafe(sql).into_sql_str(),
        false,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_a_migration_and_both_databases_have_the_same_ones() {
        let listed = |migrator: &Migrator| -> Vec<_> {
            migrator.iter().map(|migration| (migration.version, migration.description.clone())).collect()
        };
        let (sqlite, postgres) = (listed(&SQLITE_MIGRATIONS), listed(&POSTGRES_MIGRATIONS));
        assert_eq!(sqlite.len() + postgres.len(), Files::iter().count());
        assert_eq!(sqlite, postgres);
        assert!(sqlite.iter().map(|(version, _)| *version).eq(1..=i64::try_from(sqlite.len()).unwrap()));
    }
}
