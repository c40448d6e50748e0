//! Releases: where their images are, publishing, and the list that an instance serves.

mod catalog;
mod images;
pub mod publish;

pub use catalog::ReleaseCatalog;
pub use images::{ImageFailure, ImageStore, NewestImage, latest_path};
pub use publish::{ImageSource, NewRelease, PublishFailure, ReleaseStore, publish_release, read_image};
