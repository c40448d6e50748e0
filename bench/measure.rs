//! Times, processor time and medians.

use std::time::{Duration, Instant};

/// The middle one of several.
pub fn median<T: PartialOrd + Copy>(mut values: Vec<T>) -> T {
    values.sort_by(|one, other| one.partial_cmp(other).expect("values that can be compared"));
    *values.get(values.len() / 2).expect("at least one value")
}

/// The middle of the times that something takes when it is done so often.
pub fn time(times: usize, mut work: impl FnMut()) -> Duration {
    let once = |_| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    median((0..times).map(once).collect())
}

/// How long a process and all of its threads have kept a processor busy.
pub fn processor_time(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("a process that runs");
    let (_, fields) = stat.rsplit_once(") ").expect("fields after its name");
    // The 14th and 15th field of proc_pid_stat(5), in hundredths of a second on Linux; the name was the second.
    let ticks: u64 = fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("a number")).sum();
    Duration::from_millis(ticks * 10)
}

/// How much memory a process has at hand, in bytes.
pub fn memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a process that runs");
    let (_, rest) = status.split_once("VmRSS:").expect("its memory");
    rest.split_whitespace().next().and_then(|kibibytes| kibibytes.parse::<u64>().ok()).expect("a number") * 1024
}

pub fn seconds(duration: Duration) -> String {
    format!("{:.3} s", duration.as_secs_f64())
}

pub fn ratio(one: f64, other: f64) -> String {
    format!("{:.2} x", one / other)
}
