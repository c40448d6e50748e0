//! Publishes a release whose image a program uploads. It may repeat that: what it sent before is a success.

use std::ops::RangeInclusive;

use super::publish::{
    ImageSource, ImageStream, NewRelease, PublishFailure, ReleaseStore, publish_release, read_stream,
};
use crate::domain::releases::{PublishRejection, Release};
use crate::domain::time::Timestamp;

#[derive(Debug)]
pub enum Uploaded {
    New(Release),
    /// The version was published before, with the same image.
    Known(Release),
}

/// Publishes the image, as [`publish_release`] does. The image of a version that is published is only compared.
pub async fn upload_release(
    release_store: &ReleaseStore<'_>,
    new_release: NewRelease,
    image: ImageStream,
    at: Timestamp,
) -> Result<Uploaded, PublishFailure> {
    let Some(known) = check_upload(release_store, &new_release, image.length.as_ref()).await? else {
        let image = ImageSource::Stream(image);
        return publish_release(release_store, new_release, image, at, |_, _| {}).await.map(Uploaded::New);
    };
    if read_stream(image, None, |_, _| {}).await? == (known.length, known.sha256) {
        return Ok(Uploaded::Known(known));
    }
    Err(PublishRejection::VersionUsed(known.version).into())
}

/// Checks what is said of an upload, before its image. Returns the release that it may repeat: what has another length is another
/// image.
pub async fn check_upload(
    release_store: &ReleaseStore<'_>,
    new_release: &NewRelease,
    length: Option<&RangeInclusive<u64>>,
) -> Result<Option<Release>, PublishFailure> {
    let releases = release_store.store.releases().await?;
    let may_be_same =
        |known: &&Release| known.withdrawn.is_none() && length.is_none_or(|length| length.contains(&known.length));
    let known = releases.find_version(&new_release.version).filter(may_be_same);
    if known.is_none() {
        new_release.check(&releases, release_store.app)?;
    }
    Ok(known.cloned())
}
