//! Releases: where their images are, publishing, and the list that an instance serves.

mod images_and_catalog;
mod publish;
mod record;
mod upload;

pub use images_and_catalog::{ImageFailure, ImageStore, NewestImage, ReleaseCatalog, latest_path};
pub use publish::{ImageSource, ImageStream, NewRelease, PublishFailure, ReleaseStore, publish_release, read_image};
pub use record::release_record;
pub use upload::{Uploaded, upload_release};
