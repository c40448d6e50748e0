//! Releases of the app, their versions and disk images.

mod channel;
pub mod disk_image;
mod publish_rules;
mod release;
mod version;

pub use channel::{Channel, RolloutDays};
pub use disk_image::{ImageName, MEDIA_TYPE, TRAILER_SIZE, attachment, file_stem};
pub use publish_rules::{Candidate, PublishRejection};
pub use release::{Notes, Reason, Release, ReleaseEdit, Releases, Signature, Withdrawal};
pub use version::{BuildNumber, MacosVersion, Version};
