//! Timestamps, days and periods.

mod calendar;
mod timestamp;

pub use calendar::{Day, Period};
pub use timestamp::Timestamp;
