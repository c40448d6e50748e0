//! Publishes a release whose image a program uploads. It may repeat that: what it sent before is a success.

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
    let known = release_store.store.releases().await?.find_version(&new_release.version).cloned();
    let Some(known) = known.filter(|release| release.withdrawn.is_none()) else {
        let image = ImageSource::Stream(image);
        return publish_release(release_store, new_release, image, at, |_, _| {}).await.map(Uploaded::New);
    };
    // What has another length need not be read.
    let may_be_same = image.length.as_ref().is_none_or(|length| length.contains(&known.length));
    if may_be_same && read_stream(image, None, |_, _| {}).await? == (known.length, known.sha256) {
        return Ok(Uploaded::Known(known));
    }
    Err(PublishRejection::VersionUsed(known.version).into())
}
