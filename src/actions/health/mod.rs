//! What makers should know about the running service: readiness, disks, a summary, and alerts by mail.

mod alerts;
mod disk_space;
pub mod readiness;

pub use alerts::{Alerts, confirmations_in_words};
pub use disk_space::{DiskSpace, FREE_UP_SPACE, nearest_folder};
pub use readiness::{ReadinessCheck, image_problem, readiness};
