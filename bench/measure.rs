//! Wall time, CPU time, memory and medians.

use std::time::{Duration, Instant};

pub fn median<T: PartialOrd + Copy>(mut values: Vec<T>) -> T {
    values.sort_by(|one, other| one.partial_cmp(other).expect("values that can be compared"));
    *values.get(values.len() / 2).expect("at least one value")
}

/// Runs `work` several times and returns the median of the durations.
pub fn time(runs: usize, mut work: impl FnMut()) -> Duration {
    let once = |_| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    median((0..runs).map(once).collect())
}

/// Returns the CPU time of a process and all of its threads.
pub fn cpu_time(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("a running process");
    let (_, fields) = stat.rsplit_once(") ").expect("fields after its name");
    // utime and stime, fields 14 and 15 of proc_pid_stat(5), in hundredths of a second. The name is field 2.
    let ticks: u64 = fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("a number")).sum();
    Duration::from_millis(ticks * 10)
}

/// Returns the resident memory of a process in bytes.
pub fn resident_memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a running process");
    let (_, rest) = status.split_once("VmRSS:").expect("its memory");
    rest.split_whitespace().next().and_then(|kibibytes| kibibytes.parse::<u64>().ok()).expect("a number") * 1024
}

pub fn seconds(duration: Duration) -> String {
    format!("{:.3} s", duration.as_secs_f64())
}

pub fn ratio(one: f64, other: f64) -> String {
    format!("{:.2} x", one / other)
}
