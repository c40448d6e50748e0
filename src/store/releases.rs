//! The table of releases. Every change also changes their revision, which all instances read.

use super::connection::{Store, StoreFailure, Value, from_row_struct, values};
use crate::domain::network::parse_web_url;
use crate::domain::releases::{BuildNumber, ImageName, MacosVersion, Notes, Release, Releases, Signature, Version};
use crate::domain::sha256::Sha256;
use crate::domain::time::Timestamp;

const SELECT: &str = "SELECT version, file, external_url, length, sha256, notes, build, signature, minimum_macos, \
         prerelease, published_at, withdrawn_at FROM releases";

const SELECT_REVISION: &str = "SELECT number FROM revisions WHERE name = 'releases'";

const NEXT_REVISION: &str = "INSERT INTO revisions (name, number) VALUES ('releases', 1) \
     ON CONFLICT (name) DO UPDATE SET number = revisions.number + 1";

const INSERT: &str = "INSERT INTO releases (version, file, external_url, length, sha256, notes, build, signature, \
         minimum_macos, prerelease, published_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING";

const SET_NOTES: &str = "UPDATE releases SET notes = $2 WHERE version = $1";

const WITHDRAW: &str = "UPDATE releases SET withdrawn_at = $2 WHERE version = $1 AND withdrawn_at IS NULL";

from_row_struct! {
    struct ReleaseRow {
        version: String,
        file: String,
        external_url: Option<String>,
        length: i64,
        sha256: String,
        notes: String,
        build: Option<String>,
        signature: Option<String>,
        minimum_macos: Option<String>,
        prerelease: i64,
        published_at: Timestamp,
        withdrawn_at: Option<Timestamp>,
    }
}

impl Store {
    /// Returns a number that differs whenever the releases do.
    pub async fn releases_revision(&self) -> Result<i64, StoreFailure> {
        Ok(self.run(SELECT_REVISION, &[]).await?.column()?.pop().unwrap_or_default())
    }

    /// Returns all releases. A row that cannot be read does not hide the others.
    pub async fn releases(&self) -> Result<Releases, StoreFailure> {
        let rows: Vec<ReleaseRow> = self.run(SELECT, &[]).await?.all()?;
        let (mut releases, mut unreadable) = (Vec::with_capacity(rows.len()), Vec::new());
        for row in rows {
            let version = row.version.clone();
            match row.parse() {
                Some(release) => releases.push(release),
                None => unreadable.push(version),
            }
        }
        Ok(Releases::with_unreadable(releases, unreadable))
    }

    /// Inserts a release. Returns `false` if its version or file name exists already, withdrawn or not.
    pub async fn add_release(&self, release: &Release) -> Result<bool, StoreFailure> {
        let values = values![
            release.version.to_string(),
            release.file.as_str(),
            release.external_url.as_deref(),
            release.length,
            release.sha256.hex(),
            release.notes.as_str(),
            release.build.as_ref().map(BuildNumber::as_str),
            release.signature.as_ref().map(Signature::as_str),
            release.minimum_macos.as_ref().map(MacosVersion::as_str),
            release.prerelease,
            release.published,
        ];
        self.change_releases(INSERT, values).await
    }

    /// Returns `false` if there is no such release.
    pub async fn set_release_notes(&self, version: &Version, notes: &Notes) -> Result<bool, StoreFailure> {
        self.change_releases(SET_NOTES, values![version.to_string(), notes.as_str()]).await
    }

    /// Withdraws a release. Returns `false` if there is none, or it is withdrawn already.
    pub async fn withdraw_release(&self, version: &Version, at: Timestamp) -> Result<bool, StoreFailure> {
        self.change_releases(WITHDRAW, values![version.to_string(), at]).await
    }

    /// Returns whether the statement changed anything.
    async fn change_releases(&self, statement: &'static str, values: &[Value<'_>]) -> Result<bool, StoreFailure> {
        let mut tx = self.begin().await?;
        let is_changed = tx.run(statement, values).await?.affected > 0;
        if is_changed {
            tx.run(NEXT_REVISION, &[]).await?;
            tx.commit().await?;
        }
        Ok(is_changed)
    }
}

impl ReleaseRow {
    /// Returns `None` if the version has no order, the file name or the URL is unsafe, or the image cannot be checked.
    fn parse(self) -> Option<Release> {
        Some(Release {
            version: Version::parse(&self.version).ok()?,
            file: ImageName::parse(&self.file).ok()?,
            external_url: self.external_url.map(|url| parse_web_url(&url)).transpose().ok()?,
            length: u64::try_from(self.length).ok()?,
            sha256: Sha256::from_hex(&self.sha256)?,
            notes: Notes::from_stored(&self.notes),
            build: self.build.as_deref().map(BuildNumber::from_stored),
            signature: self.signature.as_deref().map(Signature::from_stored),
            minimum_macos: self.minimum_macos.as_deref().map(MacosVersion::from_stored),
            prerelease: self.prerelease != 0,
            published: self.published_at,
            withdrawn: self.withdrawn_at,
        })
    }
}
