//! Points in time as arguments.

use std::time::Duration;

use crate::domain::time::Timestamp;

/// Parses a time, or a day as its start.
pub(super) fn start_time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| "it is neither a day such as 2026-11-15 nor an RFC 3339 time".to_owned())
}

/// Parses a time, or a day as its end.
pub(super) fn end_time(text: &str) -> Result<Timestamp, String> {
    let is_day = !text.contains(['T', 't', ' ']);
    start_time(text).map(|start| if is_day { start.after(Duration::from_hours(24)) } else { start })
}
