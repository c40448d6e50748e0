//! The migrations of both databases, embedded in the program.
//!
//! `migrations/sqlite/0001_tables.sql` is version 1 of the SQLite schema, "tables". `sqlx::migrate!` would read the
//! same files, but it compiles the whole of sqlx a second time for the macro.

use std::sync::LazyLock;

use rust_embed::RustEmbed;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{AssertSqlSafe, SqlSafeStr};

pub(in crate::store) static SQLITE_MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| embedded("sqlite/"));
pub(in crate::store) static POSTGRES_MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    let mut migrator = embedded("postgres/");
    // `PostgresPool::migrate` holds a lock already.
    migrator.set_locking(false);
    migrator
});

/// The SQLite migrations up to and including `version`.
pub(in crate::store) fn migrations_up_to(version: i64) -> Migrator {
    let migrations = SQLITE_MIGRATIONS.iter().filter(|migration| migration.version <= version);
    Migrator::with_migrations(migrations.cloned().collect())
}

/// How the file of a migration begins that builds indexes of existing tables in PostgreSQL. Others would make writes wait.
const NO_TRANSACTION: &str = "-- no-transaction\n";

#[derive(RustEmbed)]
#[folder = "migrations"]
struct Files;

fn embedded(folder: &str) -> Migrator {
    let mut migrator = Migrator::with_migrations(Files::iter().filter_map(|path| migration(folder, &path)).collect());
    // `Store::migrate` decides which unknown migrations are allowed.
    migrator.set_ignore_missing(true);
    migrator
}

/// Returns `None` for a file of another folder.
fn migration(folder: &str, path: &str) -> Option<Migration> {
    let (version, description) = path.strip_prefix(folder)?.strip_suffix(".sql")?.split_once('_')?;
    let sql = String::from_utf8(Files::get(path)?.data.into_owned()).ok()?;
    let has_transaction = !sql.starts_with(NO_TRANSACTION);
    Some(Migration::new(
        version.parse().ok()?,
        description.replace('_', " ").into(),
        MigrationType::Simple,
        AssertSqlSafe(sql).into_sql_str(),
        !has_transaction,
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

    /// The statements of a migration in upper case, without comments and with single spaces.
    fn statements(migration: &Migration) -> Vec<String> {
        let lines = migration.sql.as_str().lines().map(|line| line.split("--").next().unwrap_or_default());
        let text = lines.collect::<Vec<_>>().join(" ").to_uppercase();
        let statements = text.split(';').map(|statement| statement.split_whitespace().collect::<Vec<_>>().join(" "));
        statements.filter(|statement| !statement.is_empty()).collect()
    }

    /// Whether a program that does not know the statement can still read and write, also while it runs.
    fn only_adds(statement: &str, migration: &[String], in_postgres: bool) -> bool {
        let creates_table =
            |table: &str| migration.iter().any(|one| one.starts_with(&format!("CREATE TABLE {table} (")));
        let after = |keyword: &str| statement.split_once(keyword).and_then(|(_, rest)| rest.split([' ', '(']).next());
        let is_new = || after(" ON ").is_some_and(creates_table);
        if statement.starts_with("CREATE UNIQUE INDEX ") {
            // On an existing table it could refuse what an older program writes.
            return is_new();
        }
        if statement.starts_with("CREATE INDEX CONCURRENTLY ")
            || statement.starts_with("DROP INDEX CONCURRENTLY IF EXISTS ")
        {
            return migration
                .iter()
                .all(|one| one.contains(" CONCURRENTLY ") || one.starts_with("INSERT INTO SCHEMA_VERSIONS "));
        }
        if statement.starts_with("ALTER TABLE ") {
            let nullable = !statement.contains("NOT NULL") || statement.contains(" DEFAULT ");
            return statement.contains(" ADD COLUMN ") && nullable && !statement.contains(',');
        }
        if statement.starts_with("INSERT INTO ") {
            return after("INSERT INTO ").is_some_and(|table| table == "SCHEMA_VERSIONS" || creates_table(table));
        }
        // PostgreSQL would lock an existing table for as long as it takes.
        let is_index = statement.starts_with("CREATE INDEX ") && (!in_postgres || is_new());
        is_index || statement.starts_with("CREATE TABLE ")
    }

    fn with_statements(migrator: &Migrator) -> impl Iterator<Item = (&Migration, Vec<String>)> {
        migrator.iter().map(|migration| (migration, statements(migration)))
    }

    #[test]
    fn a_migration_only_adds_so_that_older_programs_keep_working() {
        for (migrations, in_postgres) in [(&SQLITE_MIGRATIONS, false), (&POSTGRES_MIGRATIONS, true)] {
            for (migration, statements) in with_statements(migrations) {
                for statement in &statements {
                    assert!(only_adds(statement, &statements, in_postgres), "{}: {statement}", migration.version);
                }
            }
        }
        for breaking in [
            "DROP TABLE PEOPLE",
            "DELETE FROM COUNTS",
            "UPDATE PEOPLE SET EMAIL = ''",
            "ALTER TABLE COUNTS RENAME COLUMN SOURCE TO NAME",
            "ALTER TABLE COUNTS DROP COLUMN NAME",
            "ALTER TABLE PEOPLE ADD COLUMN AGE BIGINT NOT NULL",
            "ALTER TABLE PEOPLE ALTER COLUMN EMAIL TYPE TEXT",
            "CREATE UNIQUE INDEX PEOPLE_BY_EMAIL ON PEOPLE (EMAIL)",
            "CREATE INDEX PEOPLE_BY_EMAIL ON PEOPLE (EMAIL)",
            "CREATE TRIGGER REFUSE BEFORE INSERT ON PEOPLE BEGIN SELECT 1",
            "INSERT INTO PEOPLE (ADDRESS) SELECT ''",
        ] {
            assert!(!only_adds(breaking, &[], true), "{breaking}");
        }
        for adding in [
            "ALTER TABLE PEOPLE ADD COLUMN AGE BIGINT",
            "ALTER TABLE PEOPLE ADD COLUMN AGE BIGINT NOT NULL DEFAULT 0",
            "CREATE INDEX CONCURRENTLY PEOPLE_BY_EMAIL ON PEOPLE (EMAIL)",
        ] {
            assert!(only_adds(adding, &[], true), "{adding}");
        }
    }

    #[test]
    fn a_migration_records_the_oldest_program_that_may_still_run() {
        let row = "INSERT INTO SCHEMA_VERSIONS (VERSION, OLDEST_COMPATIBLE) VALUES (";
        let recorded = |migrator| -> Vec<(i64, Option<i64>)> {
            let read = |(migration, statements): (&Migration, Vec<String>)| {
                let values = statements.iter().find_map(|statement| statement.strip_prefix(row)?.strip_suffix(')'));
                let own = values.and_then(|values| values.strip_prefix(&format!("{}, ", migration.version)));
                (migration.version, own.and_then(|oldest| oldest.parse().ok()))
            };
            with_statements(migrator).map(read).collect()
        };
        let (sqlite, postgres) = (recorded(&SQLITE_MIGRATIONS), recorded(&POSTGRES_MIGRATIONS));
        assert_eq!(sqlite, postgres);
        for (version, oldest) in sqlite {
            let allowed = oldest.is_some_and(|oldest| (1..=version).contains(&oldest));
            assert!(allowed, "migration {version} records {oldest:?}");
        }
    }
}
