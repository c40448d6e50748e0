//! What the figures were measured on: kind of machine, and versions of the peers.

use std::process::Command;

/// Describes the machine and the software in one paragraph.
pub fn machine() -> String {
    let cores = std::thread::available_parallelism().expect("a number of cores");
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a kernel");
    let kernel = kernel.split('-').next().unwrap_or_default().trim();
    format!(
        "Measured on {cores} cores of {} with Linux {kernel}. Compared with {}, {} and rmcp {}.",
        processor(),
        nginx(),
        postgres(),
        rmcp()
    )
}

fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name| {
        let line = info.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim())
    };
    let is_virtual = field("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let model = field("model name").unwrap_or("an unnamed processor");
    if is_virtual { format!("a virtual machine ({model})") } else { model.to_owned() }
}

/// nginx writes its version to standard error.
fn nginx() -> String {
    let output = Command::new("nginx").arg("-v").output().expect("nginx: apt-get install nginx-light");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.trim().rsplit(": ").next().unwrap_or_default().replace('/', " ")
}

fn postgres() -> String {
    let program = crate::postgres::programs().join("postgres");
    let output = Command::new(program).arg("--version").output().expect("PostgreSQL");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    format!("PostgreSQL {}", text.split(' ').nth(2).unwrap_or_default())
}

fn rmcp() -> &'static str {
    let lock = include_str!("../Cargo.lock");
    let (_, package) = lock.split_once("name = \"rmcp\"\nversion = \"").expect("rmcp in Cargo.lock");
    package.split('"').next().unwrap_or_default()
}
