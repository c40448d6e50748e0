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

pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Returns the CPU time of a process, all of its threads and its children.
pub fn cpu_time(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("a running process");
    let (_, fields) = stat.rsplit_once(") ").expect("fields after its name");
    // utime and stime, fields 14 and 15 of proc_pid_stat(5), in hundredths of a second. The name is field 2.
    let ticks: u64 = fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("a number")).sum();
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    let of_children = children.split_whitespace().map(|child| cpu_time(child.parse().expect("a process id")));
    Duration::from_millis(ticks * 10) + of_children.sum::<Duration>()
}

/// Returns the resident memory of a process in MiB.
pub fn resident_memory(process: u32) -> f64 {
    memory(process, "VmRSS:").expect("a running process")
}

/// Returns the most memory that a process has had resident, in MiB, or `None` if it has ended.
pub fn peak_memory(process: u32) -> Option<f64> {
    memory(process, "VmHWM:")
}

fn memory(process: u32, field: &str) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let (_, rest) = status.split_once(field)?;
    let kibibytes: f64 = rest.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes / 1024.0)
}
