//! What happens to a release after it was published: it is edited, withdrawn, and put back.
//!
//! Its image never changes. The rules are those of publishing (`domain/releases/publish_rules.rs`), so that no change leaves
//! people without updates. Withdrawing is always possible.

use futures_util::TryStreamExt as _;

use super::images_and_catalog::{ImageFailure, ImageStore};
use crate::domain::releases::{
    Candidate, ImageName, PublishRejection, Reason, Release, ReleaseEdit, Releases, Version, Withdrawal,
};
use crate::domain::sha256::Sha256Hasher;
use crate::domain::time::{Day, Timestamp};
use crate::store::{Store, StoreFailure};

/// Why a release was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeFailure {
    #[error("There is no release {0}.")]
    Unknown(Version),
    #[error("{version} was already withdrawn on {}.", Day::of(*.at).long())]
    AlreadyWithdrawn { version: Version, at: Timestamp },
    #[error("{0} is not withdrawn.")]
    NotWithdrawn(Version),
    #[error("Nothing was changed: {0}.")]
    Rejected(#[from] PublishRejection),
    #[error("Nothing was changed: the date is in the future.")]
    FutureDate,
    #[error("Nothing was changed: the image {file} cannot be read: {why}.")]
    Image { file: ImageName, why: ImageFailure },
    #[error("Nothing was changed: the image {0} is not the one that was published. Put that one back in its place.")]
    OtherImage(ImageName),
    #[error("{}", .0.sentence("Nothing was changed"))]
    Store(#[from] StoreFailure),
}

/// Changes what is given of a release, which may be withdrawn.
pub async fn edit_release(
    store: &Store,
    version: &Version,
    edit: &ReleaseEdit,
    force: bool,
    at: Timestamp,
) -> Result<(), ChangeFailure> {
    let releases = store.releases().await?;
    let release = find(&releases, version)?;
    if edit.published.is_some_and(|published| published > at) {
        return Err(ChangeFailure::FutureDate);
    }
    let candidate = Candidate::of(release, force);
    let changed = Candidate {
        channel: edit.channel.as_ref().unwrap_or(candidate.channel),
        build: edit.build.as_ref().or(candidate.build),
        signature: edit.signature.as_ref().or(candidate.signature),
        ..candidate
    };
    let changes_order = edit.channel.is_some() || edit.build.is_some();
    if changes_order && release.withdrawn.is_none() {
        releases.check_changed(changed)?;
    }
    if store.change_release(version, edit).await? { Ok(()) } else { Err(ChangeFailure::Unknown(version.clone())) }
}

/// Returns the release if it can be withdrawn.
pub fn check_withdrawable<'a>(releases: &'a Releases, version: &Version) -> Result<&'a Release, ChangeFailure> {
    let release = find(releases, version)?;
    match &release.withdrawn {
        Some(Withdrawal { at, .. }) => Err(ChangeFailure::AlreadyWithdrawn { version: version.clone(), at: *at }),
        None => Ok(release),
    }
}

/// What is asked about a release before it is withdrawn, in sentences.
pub fn what_withdrawing_does(releases: &Releases, release: &Release) -> [String; 2] {
    let Release { version, channel, .. } = release;
    let next = releases.available().find(|other| other.channel == *channel && other.version != *version);
    let place = if channel.is_stable() { String::new() } else { format!(" in the channel {channel}") };
    let instead = match next {
        _ if releases.newest_of(channel) != Some(release) => String::new(),
        Some(next) => format!(" People{place} will get {} instead.", next.version),
        None => format!(" Nothing can be downloaded{place} until you publish another one."),
    };
    let rest = "The image is kept, and you can put the release back; no other image can have its version. Who has it already keeps it.";
    [format!("It can no longer be downloaded.{instead}"), rest.to_owned()]
}

/// Stops offering a release. Its version and its file name stay used.
pub async fn withdraw_release(
    store: &Store,
    version: &Version,
    reason: Option<Reason>,
    at: Timestamp,
) -> Result<(), ChangeFailure> {
    check_withdrawable(&store.releases().await?, version)?;
    if store.withdraw_release(version, &Withdrawal { at, reason }).await? {
        Ok(())
    } else {
        // Somebody else was faster.
        Err(ChangeFailure::AlreadyWithdrawn { version: version.clone(), at })
    }
}

/// Offers a withdrawn release again, if its image is the one that was published and it could be published now.
pub async fn restore_release(
    store: &Store,
    images: &ImageStore,
    version: &Version,
    force: bool,
) -> Result<(), ChangeFailure> {
    let check = |releases: &Releases| {
        let release = find(releases, version)?;
        if release.withdrawn.is_none() {
            return Err(ChangeFailure::NotWithdrawn(version.clone()));
        }
        releases.check_becoming_available(Candidate::of(release, force))?;
        Ok(release.clone())
    };
    let release = check(&store.releases().await?)?;
    if release.external_url.is_none() {
        verify_image(images, &release).await?;
    }
    // Reading the image takes a while: a release may have been published meanwhile.
    check(&store.releases().await?)?;
    if store.restore_release(version).await? { Ok(()) } else { Err(ChangeFailure::NotWithdrawn(version.clone())) }
}

fn find<'a>(releases: &'a Releases, version: &Version) -> Result<&'a Release, ChangeFailure> {
    releases.find_version(version).ok_or_else(|| ChangeFailure::Unknown(version.clone()))
}

/// Reads the whole image and compares its SHA-256.
async fn verify_image(images: &ImageStore, release: &Release) -> Result<(), ChangeFailure> {
    let unreadable = |why| ChangeFailure::Image { file: release.file.clone(), why };
    let mut chunks = images.read(release, 0, release.length).await.map_err(unreadable)?;
    let mut hasher = Sha256Hasher::default();
    while let Some(chunk) = chunks.try_next().await.map_err(|why| unreadable(why.into()))? {
        hasher.update(&chunk);
    }
    if hasher.finish() == release.sha256 { Ok(()) } else { Err(ChangeFailure::OtherImage(release.file.clone())) }
}
