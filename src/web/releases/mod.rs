//! The disk images, and lists of them for people, Sparkle, feed readers and programs.

mod downloads;
pub(crate) mod files;
mod send_image;

pub(crate) use downloads::{image, latest};
