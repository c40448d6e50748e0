//! The disk images, and lists of them for people, Sparkle, feed readers and programs.

mod downloads;
pub(crate) mod feeds;

pub(crate) use downloads::{image, latest, latest_of_channel};
