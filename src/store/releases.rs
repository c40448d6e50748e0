//! The table of releases. Every change also changes their revision, which all instances read.

use super::connection::{Store, StoreFailure, Value, from_row_struct, values};
use super::revisions::Revision;
use crate::domain::network::parse_web_url;
use crate::domain::releases::{
    BuildNumber, Channel, ImageName, MacosVersion, Notes, Reason, Release, ReleaseEdit, Releases, RolloutDays,
    Signature, Version, Withdrawal,
};
use crate::domain::sha256::Sha256;
use crate::domain::time::Timestamp;

const SELECT: &str = "SELECT written, file, external_url, length, sha256, notes, build, signature, minimum_macos, channel, \
         critical, phased_days, published_at, withdrawn_at, withdrawn_reason FROM releases";

const INSERT: &str = "INSERT INTO releases (version, written, file, external_url, length, sha256, notes, build, signature, \
         minimum_macos, channel, critical, phased_days, published_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) ON CONFLICT DO NOTHING";

/// NULL leaves a column as it is, so that two makers can change different columns.
const CHANGE: &str = "UPDATE releases SET notes = COALESCE($2, notes), build = COALESCE($3, build), \
         signature = COALESCE($4, signature), minimum_macos = COALESCE($5, minimum_macos), \
         channel = COALESCE($6, channel), critical = COALESCE($7, critical), \
         phased_days = COALESCE($8, phased_days), published_at = COALESCE($9, published_at) \
     WHERE version = $1";

const WITHDRAW: &str =
    "UPDATE releases SET withdrawn_at = $2, withdrawn_reason = $3 WHERE version = $1 AND withdrawn_at IS NULL";

const RESTORE: &str = "UPDATE releases SET withdrawn_at = NULL, withdrawn_reason = NULL \
     WHERE version = $1 AND withdrawn_at IS NOT NULL";

from_row_struct! {
    struct ReleaseRow {
        written: String,
        file: String,
        external_url: Option<String>,
        length: i64,
        sha256: String,
        notes: String,
        build: Option<String>,
        signature: Option<String>,
        minimum_macos: Option<String>,
        channel: String,
        critical: i64,
        phased_days: i64,
        published_at: Timestamp,
        withdrawn_at: Option<Timestamp>,
        withdrawn_reason: Option<String>,
    }
}

impl Store {
    /// Returns all releases. A row that cannot be read does not hide the others.
    pub async fn releases(&self) -> Result<Releases, StoreFailure> {
        Ok(readable(self.run(SELECT, &[]).await?.all()?))
    }

    /// Inserts a release that passes the check. Returns `false` if its version or file name exists already, withdrawn or not.
    pub async fn add_release<E: From<StoreFailure>>(
        &self,
        release: &Release,
        check: impl FnOnce(&Releases) -> Result<(), E>,
    ) -> Result<bool, E> {
        let values = values![
            release.version.key(),
            release.version.as_str(),
            release.file.as_str(),
            release.external_url.as_deref(),
            release.length,
            release.sha256.hex(),
            release.notes.as_str(),
            release.build.as_ref().map(BuildNumber::as_str),
            release.signature.as_ref().map(Signature::as_str),
            release.minimum_macos.as_ref().map(MacosVersion::as_str),
            release.channel.as_str(),
            release.critical,
            i64::from(release.phased.days()),
            release.published,
        ];
        self.change_releases(INSERT, values, check).await
    }
    /// Changes what is given. Returns `false` if there is no such release.
    pub async fn change_release<E: From<StoreFailure>>(
        &self,
        version: &Version,
        edit: &ReleaseEdit,
        check: impl FnOnce(&Releases) -> Result<(), E>,
    ) -> Result<bool, E> {
        let values = values![
            version.key(),
            edit.notes.as_ref().map(Notes::as_str),
            edit.build.as_ref().map(BuildNumber::as_str),
            edit.signature.as_ref().map(Signature::as_str),
            edit.minimum_macos.as_ref().map(MacosVersion::as_str),
            edit.channel.as_ref().map(Channel::as_str),
            edit.critical,
            edit.phased.map(|phased| i64::from(phased.days())),
            edit.published,
        ];
        self.change_releases(CHANGE, values, check).await
    }

    /// Withdraws a release. Returns `false` if there is none, or it is withdrawn already.
    pub async fn withdraw_release(&self, version: &Version, withdrawal: &Withdrawal) -> Result<bool, StoreFailure> {
        let reason = withdrawal.reason.as_ref().map(Reason::as_str);
        self.change_releases(WITHDRAW, values![version.key(), withdrawal.at, reason], |_| Ok(())).await
    }

    /// Takes a withdrawal back. Returns `false` if there is none.
    pub async fn restore_release<E: From<StoreFailure>>(
        &self,
        version: &Version,
        check: impl FnOnce(&Releases) -> Result<(), E>,
    ) -> Result<bool, E> {
        self.change_releases(RESTORE, values![version.key()], check).await
    }

    /// Returns whether the statement changed anything. The check sees all changes before this one: they lock the row of their
    /// revision, one after the other.
    async fn change_releases<E: From<StoreFailure>>(
        &self,
        statement: &'static str,
        values: &[Value<'_>],
        check: impl FnOnce(&Releases) -> Result<(), E>,
    ) -> Result<bool, E> {
        let mut tx = self.begin().await?;
        tx.change_revision(Revision::Releases).await?;
        check(&readable(tx.run(SELECT, &[]).await?.all()?))?;
        let is_changed = tx.run(statement, values).await?.affected > 0;
        if is_changed {
            tx.commit().await?;
        }
        Ok(is_changed)
    }
}

fn readable(rows: Vec<ReleaseRow>) -> Releases {
    let (mut releases, mut unreadable) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows {
        let version = row.written.clone();
        match row.parse() {
            Some(release) => releases.push(release),
            None => unreadable.push(version),
        }
    }
    Releases::with_unreadable(releases, unreadable)
}

impl ReleaseRow {
    /// Returns `None` if the version has no order, the file name or the URL is unsafe, or the image cannot be checked.
    fn parse(self) -> Option<Release> {
        Some(Release {
            version: Version::parse(&self.written).ok()?,
            file: ImageName::parse(&self.file).ok()?,
            external_url: self.external_url.map(|url| parse_web_url(&url)).transpose().ok()?,
            length: u64::try_from(self.length).ok()?,
            sha256: Sha256::from_hex(&self.sha256)?,
            notes: Notes::from_stored(&self.notes),
            build: self.build.as_deref().map(BuildNumber::from_stored),
            signature: self.signature.as_deref().map(Signature::from_stored),
            minimum_macos: self.minimum_macos.as_deref().map(MacosVersion::from_stored),
            channel: Channel::from_stored(self.channel),
            critical: self.critical != 0,
            phased: RolloutDays::from_stored(self.phased_days),
            published: self.published_at,
            withdrawn: self
                .withdrawn_at
                .map(|at| Withdrawal { at, reason: self.withdrawn_reason.map(Reason::from_stored) }),
        })
    }
}
