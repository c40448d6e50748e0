//! Points in time as arguments.

use std::time::Duration;

use clap::Args;

use crate::domain::time::Timestamp;

/// The options `--since` and `--until`. A command that has them sets their help.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct TimeRange {
    #[arg(long, value_name = "TIME", value_parser = start_time)]
    pub since: Option<Timestamp>,
    #[arg(long, value_name = "TIME", value_parser = end_time)]
    pub until: Option<Timestamp>,
}

impl TimeRange {
    pub(super) fn contains(self, at: Timestamp) -> bool {
        self.since.is_none_or(|since| at >= since) && self.until.is_none_or(|until| at < until)
    }
}

/// Parses a time, or a day as its start.
fn start_time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| "it is neither a day such as 2026-11-15 nor an RFC 3339 time".to_owned())
}

/// Parses a time, or a day as its end.
fn end_time(text: &str) -> Result<Timestamp, String> {
    let is_day = !text.contains(['T', 't', ' ']);
    start_time(text).map(|start| if is_day { start.after(Duration::from_hours(24)) } else { start })
}
