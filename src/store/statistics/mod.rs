//! Daily counts.

mod counts;
mod reads;

pub use counts::DailyCount;
pub(in crate::store) use counts::{counts_batch, sources_batch};
