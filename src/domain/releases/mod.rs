//! Releases of the app, their versions and disk images.

pub mod disk_image;
mod release;
mod version;

pub use disk_image::{ImageName, MEDIA_TYPE, TRAILER_SIZE, attachment, file_stem};
pub use release::{Notes, PublishRejection, Release, Releases, Signature};
pub use version::{BuildNumber, MacosVersion, Version};
