//! Releases: where their images are, publishing, and the list that an instance serves.

mod images_and_catalog;
mod publish;

pub use images_and_catalog::{ImageFailure, ImageStore, NewestImage, ReleaseCatalog, latest_path};
pub use publish::{ImageSource, NewRelease, PublishFailure, ReleaseStore, publish_release, read_image};
