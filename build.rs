//! Rebuilds the program when a file that is built into it is new, and tells it the commit it is built from, and its time.

use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

fn main() {
    println!("cargo:rerun-if-changed=content");
    println!("cargo:rerun-if-changed=migrations");
    println!("cargo:rerun-if-changed=starter");
    let version = match given("PORCHLIGHT_COMMIT").or_else(|| git(&["rev-parse", "--short=12", "HEAD"])) {
        Some(commit) => concat!(env!("CARGO_PKG_VERSION"), " (").to_owned() + &commit + ")",
        None => env!("CARGO_PKG_VERSION").to_owned(),
    };
    println!("cargo:rustc-env=PORCHLIGHT_VERSION={version}");
    let time = given("SOURCE_DATE_EPOCH").or_else(|| git(&["log", "-1", "--format=%ct"]));
    println!("cargo:rustc-env=PORCHLIGHT_COMMIT_TIME={}", time.unwrap_or_else(now));
}

/// What the one who builds says in place of git.
#[expect(clippy::disallowed_methods, reason = "the program itself reads no environment outside of `config`")]
fn given(variable: &str) -> Option<String> {
    println!("cargo:rerun-if-env-changed={variable}");
    std::env::var(variable).ok().filter(|value| !value.is_empty())
}

/// Seconds since the start of 1970.
#[expect(clippy::disallowed_methods, reason = "the program itself asks its `Clock`")]
fn now() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_secs().to_string()
}

/// Asks git about a clone. Returns `None` if the sources are no clone or there is no git.
fn git(arguments: &[&str]) -> Option<String> {
    // Git writes this file whenever the commit changes.
    let log = Path::new(".git/logs/HEAD");
    if !log.exists() {
        return None;
    }
    println!("cargo:rerun-if-changed={}", log.display());
    let git = Command::new("git").args(arguments).output().ok()?;
    let answer = String::from_utf8(git.stdout).ok()?;
    git.status.success().then(|| answer.trim().to_owned())
}
