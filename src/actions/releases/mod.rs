//! Releases: where their images are, publishing and changing them, and the list that an instance serves.

mod change;
mod images_and_catalog;
mod publish;
mod record;
mod upload;

pub use change::{
    ChangeFailure, check_withdrawable, edit_release, restore_release, what_withdrawing_does, withdraw_release,
};
pub use images_and_catalog::{ImageFailure, ImageStore, NewestImage, ReleaseCatalog, latest_path, latest_path_of};
pub use publish::{
    ImageSource, ImageStream, NewRelease, PublishFailure, ReleaseStore, check_end, publish_release, read_image,
};
pub use record::{release_record, same_image_note};
pub use upload::{Uploaded, check_upload, upload_release};
