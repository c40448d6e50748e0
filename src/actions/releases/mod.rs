//! Releases: where their images are, publishing, and the list that an instance serves.

mod publish;
mod served;

pub use publish::{ImageSource, NewRelease, PublishFailure, ReleaseStore, publish_release, read_image};
pub use served::{ImageFailure, ImageStore, NewestImage, ReleaseCatalog, latest_path};
