//! What is left of a person in the files of an embedded database after everything was deleted.
//!
//! SQLite overwrites what it deletes, but not the copies that it left in unused space when it moved
//! rows from page to page, nor what its log holds until that is emptied.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use sqlx::{Connection, Executor, SqlitePool};

use super::Store;
use crate::domain::email::EmailAddress;

/// How often and how long it is tried to find a moment without readers. Writers wait meanwhile, so
/// each try is short.
const TRIES: usize = 10;
const EACH_TRY: &str = "PRAGMA busy_timeout = 100";
const BETWEEN_TRIES: Duration = Duration::from_millis(150);

/// What a file is searched by at a time.
const PIECE: usize = 1 << 20;

/// Where traces may be left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScrubOutcome {
    Clean,
    /// Somebody was reading all the time: until the log is written over, or nobody has the database open.
    LeftInWal,
    /// It could not be found out, or not be helped.
    LeftInFile(String),
}

impl Store {
    /// Has what was deleted of an address leave the files, too, and says what could not. On
    /// PostgreSQL that is the server's business.
    pub async fn scrub_deleted(&self, email: &EmailAddress) -> ScrubOutcome {
        let Self::Sqlite(pool) = self else { return ScrubOutcome::Clean };
        match forget(pool, [email.key().to_owned(), email.as_typed().to_ascii_lowercase()]).await {
            Ok(true) => ScrubOutcome::Clean,
            Ok(false) => ScrubOutcome::LeftInWal,
            Err(why) => ScrubOutcome::LeftInFile(why.to_string()),
        }
    }
}

/// False when the log could not be emptied.
async fn forget(pool: &SqlitePool, texts: [String; 2]) -> Result<bool, sqlx::Error> {
    if !empty_log(pool).await? {
        return Ok(false);
    }
    let file = pool.connect_options().get_filename().to_owned();
    let search = move || -> std::io::Result<bool> {
        let [one, other] = &texts;
        Ok(holds(&file, one.as_bytes())? || holds(&file, other.as_bytes())?)
    };
    if !tokio::task::spawn_blocking(search).await.map_err(std::io::Error::other)?? {
        return Ok(true);
    }
    pool.execute("VACUUM").await?;
    empty_log(pool).await
}

/// Moves everything from the log into the file and empties it; false when readers did not let us.
async fn empty_log(pool: &SqlitePool) -> Result<bool, sqlx::Error> {
    let mut connection = pool.acquire().await?.detach();
    connection.execute(EACH_TRY).await?;
    let mut emptied = false;
    for _ in 0..TRIES {
        let (busy, _, _): (i64, i64, i64) =
            sqlx::query_as("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(&mut connection).await?;
        emptied = busy == 0;
        if emptied {
            break;
        }
        tokio::time::sleep(BETWEEN_TRIES).await;
    }
    connection.close().await?;
    Ok(emptied)
}

/// Whether a file holds a text anywhere, in whichever case.
fn holds(path: &Path, needle: &[u8]) -> std::io::Result<bool> {
    let (mut file, mut piece, mut kept) = (File::open(path)?, vec![0; PIECE + needle.len()], 0);
    loop {
        let read = file.read(&mut piece[kept..])?;
        if read == 0 {
            return Ok(false);
        }
        let end = kept + read;
        piece[kept..end].make_ascii_lowercase();
        if piece[..end].windows(needle.len()).any(|window| window == needle) {
            return Ok(true);
        }
        kept = end.min(needle.len() - 1);
        piece.copy_within(end - kept..end, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_wherever_it_lies() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for before in [0, 1, PIECE - 20, PIECE - 8, PIECE - 1, PIECE, PIECE + 5, 3 * PIECE - 3] {
            let mut bytes = vec![b'a'; before];
            bytes.extend(b"ADA@example.com and more");
            std::fs::write(file.path(), &bytes).unwrap();
            assert!(holds(file.path(), b"ada@example.com").unwrap(), "{before}");
            assert!(!holds(file.path(), b"bob@example.com").unwrap());
        }
        std::fs::write(file.path(), "").unwrap();
        assert!(!holds(file.path(), b"ada@example.com").unwrap());
    }
}
