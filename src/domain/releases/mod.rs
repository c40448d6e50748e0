//! Releases of the app, their versions and disk images.

pub mod disk_image;
mod publish_rules;
mod release;
mod version;

pub use disk_image::{ImageName, MEDIA_TYPE, TRAILER_SIZE, attachment, file_stem};
pub use publish_rules::PublishRejection;
pub use release::{Notes, Release, Releases, Signature};
pub use version::{BuildNumber, MacosVersion, Version};
