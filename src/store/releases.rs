//! The table of releases.

use super::statement::{from_row_struct, on_pool};
use super::{Store, StoreFailure};
use crate::domain::base_url::parse_web_url;
use crate::domain::disk_image::ImageName;
use crate::domain::release::{Notes, Release, Releases, Signature};
use crate::domain::sha256::Sha256;
use crate::domain::time::Timestamp;
use crate::domain::version::{BuildNumber, MacosVersion, Version};

/// Changes whenever the releases change: rows are never deleted, and are updated only once, when withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleasesRevision {
    published: i64,
    withdrawn: i64,
}

from_row_struct! {
    struct ReleaseRow {
        version: String,
        file: String,
        elsewhere: Option<String>,
        length: i64,
        sha256: String,
        notes: String,
        build: Option<String>,
        signature: Option<String>,
        minimum_macos: Option<String>,
        prerelease: i64,
        published: i64,
        withdrawn: Option<i64>,
    }
}

impl Store {
    pub async fn releases_revision(&self) -> Result<ReleasesRevision, StoreFailure> {
        const COUNT: &str = "SELECT count(*), count(withdrawn) FROM releases";
        let (published, withdrawn) = on_pool!(self, |pool| sqlx::query_as(COUNT).fetch_one(pool).await?);
        Ok(ReleasesRevision { published, withdrawn })
    }

    /// Returns all releases. A row that cannot be read does not hide the others.
    pub async fn releases(&self) -> Result<Releases, StoreFailure> {
        const ALL: &str = "SELECT * FROM releases";
        let rows: Vec<ReleaseRow> = on_pool!(self, |pool| sqlx::query_as(ALL).fetch_all(pool).await?);
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
        const INSERT: &str = "INSERT INTO releases (version, file, elsewhere, length, sha256, notes, build, signature, \
                              minimum_macos, prerelease, published) \
                              VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING";
        let rows = on_pool!(self, |pool| sqlx::query(INSERT)
            .bind(release.version.to_string())
            .bind(release.file.as_str())
            .bind(&release.external_url)
            .bind(i64::try_from(release.length).unwrap_or(i64::MAX))
            .bind(release.sha256.hex())
            .bind(release.notes.as_str())
            .bind(release.build.as_ref().map(BuildNumber::as_str))
            .bind(release.signature.as_ref().map(Signature::as_str))
            .bind(release.minimum_macos.as_ref().map(MacosVersion::as_str))
            .bind(i64::from(release.prerelease))
            .bind(release.published.unix_millis())
            .execute(pool)
            .await?
            .rows_affected());
        Ok(rows > 0)
    }

    /// Withdraws a release. Returns `false` if there is none, or it is withdrawn already.
    pub async fn withdraw_release(&self, version: &Version, at: Timestamp) -> Result<bool, StoreFailure> {
        const WITHDRAW: &str = "UPDATE releases SET withdrawn = $2 WHERE version = $1 AND withdrawn IS NULL";
        let rows = on_pool!(self, |pool| sqlx::query(WITHDRAW)
            .bind(version.to_string())
            .bind(at.unix_millis())
            .execute(pool)
            .await?
            .rows_affected());
        Ok(rows > 0)
    }
}

impl ReleaseRow {
    /// Returns `None` if the version has no order, the file name or the URL is unsafe, or the image cannot be checked.
    fn parse(self) -> Option<Release> {
        Some(Release {
            version: Version::parse(&self.version).ok()?,
            file: ImageName::parse(&self.file).ok()?,
            external_url: self.elsewhere.map(|url| parse_web_url(&url)).transpose().ok()?,
            length: u64::try_from(self.length).ok()?,
            sha256: Sha256::from_hex(&self.sha256)?,
            notes: Notes::from_stored(&self.notes),
            build: self.build.as_deref().map(BuildNumber::from_stored),
            signature: self.signature.as_deref().map(Signature::from_stored),
            minimum_macos: self.minimum_macos.as_deref().map(MacosVersion::from_stored),
            prerelease: self.prerelease != 0,
            published: Timestamp::from_unix_millis(self.published),
            withdrawn: self.withdrawn.map(Timestamp::from_unix_millis),
        })
    }
}
