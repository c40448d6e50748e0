//! Removes what is left of deleted rows in the files of a SQLite database.
//!
//! `secure_delete` overwrites deleted rows, but not older copies of them: those in free space, from when a row was
//! moved to another page, and those in the WAL.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use sqlx::{Connection, Executor, SqlitePool};

use super::Store;
use crate::domain::email::EmailAddress;

/// Truncating the WAL has to wait for readers and blocks writers, so each attempt is short.
const MAX_ATTEMPTS: usize = 10;
const SET_ATTEMPT_TIMEOUT: &str = "PRAGMA busy_timeout = 100";
const RETRY_DELAY: Duration = Duration::from_millis(150);

const CHUNK_SIZE: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScrubOutcome {
    Clean,
    /// Readers kept the WAL from being truncated. Deleted data stays there until it is overwritten or
    /// the database is closed.
    LeftInWal,
    /// The file could not be searched or vacuumed. Deleted data may be left in it.
    LeftInFile(String),
}

impl Store {
    /// Removes what is left of a deleted address from the database files. On PostgreSQL this is left to the server.
    pub async fn scrub_deleted(&self, email: &EmailAddress) -> ScrubOutcome {
        let Self::Sqlite(pool) = self else { return ScrubOutcome::Clean };
        match scrub(pool, [email.key().to_owned(), email.as_typed().to_ascii_lowercase()]).await {
            Ok(true) => ScrubOutcome::Clean,
            Ok(false) => ScrubOutcome::LeftInWal,
            Err(why) => ScrubOutcome::LeftInFile(why.to_string()),
        }
    }
}

/// Returns `false` if the WAL could not be truncated.
async fn scrub(pool: &SqlitePool, needles: [String; 2]) -> Result<bool, sqlx::Error> {
    if !truncate_wal(pool).await? {
        return Ok(false);
    }
    let file = pool.connect_options().get_filename().to_owned();
    let search = move || -> std::io::Result<bool> {
        let [first, second] = &needles;
        Ok(contains(&file, first.as_bytes())? || contains(&file, second.as_bytes())?)
    };
    if !tokio::task::spawn_blocking(search).await.map_err(std::io::Error::other)?? {
        return Ok(true);
    }
    pool.execute("VACUUM").await?;
    truncate_wal(pool).await
}

/// Checkpoints and truncates the WAL. Returns `false` if readers prevented it.
async fn truncate_wal(pool: &SqlitePool) -> Result<bool, sqlx::Error> {
    let mut connection = pool.acquire().await?.detach();
    connection.execute(SET_ATTEMPT_TIMEOUT).await?;
    let mut truncated = false;
    for _ in 0..MAX_ATTEMPTS {
        let (busy, _, _): (i64, i64, i64) =
            sqlx::query_as("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(&mut connection).await?;
        truncated = busy == 0;
        if truncated {
            break;
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
    connection.close().await?;
    Ok(truncated)
}

/// Whether the file contains the lower-case text, ignoring ASCII case.
fn contains(path: &Path, needle: &[u8]) -> std::io::Result<bool> {
    let (mut file, mut chunk, mut kept) = (File::open(path)?, vec![0; CHUNK_SIZE + needle.len()], 0);
    loop {
        let read = file.read(&mut chunk[kept..])?;
        if read == 0 {
            return Ok(false);
        }
        let end = kept + read;
        chunk[kept..end].make_ascii_lowercase();
        if chunk[..end].windows(needle.len()).any(|window| window == needle) {
            return Ok(true);
        }
        kept = end.min(needle.len() - 1);
        chunk.copy_within(end - kept..end, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_across_chunks() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for before in
            [0, 1, CHUNK_SIZE - 20, CHUNK_SIZE - 8, CHUNK_SIZE - 1, CHUNK_SIZE, CHUNK_SIZE + 5, 3 * CHUNK_SIZE - 3]
        {
            let mut bytes = vec![b'a'; before];
            bytes.extend(b"ADA@example.com and more");
            std::fs::write(file.path(), &bytes).unwrap();
            assert!(contains(file.path(), b"ada@example.com").unwrap(), "{before}");
            assert!(!contains(file.path(), b"bob@example.com").unwrap());
        }
        std::fs::write(file.path(), "").unwrap();
        assert!(!contains(file.path(), b"ada@example.com").unwrap());
    }
}
