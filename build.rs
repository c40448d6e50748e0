//! Rebuilds the program when a file that is built into it is new, and tells it the commit it is built from.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=content");
    println!("cargo:rerun-if-changed=migrations");
    println!("cargo:rerun-if-changed=starter");
    println!("cargo:rerun-if-env-changed=PORCHLIGHT_COMMIT");
    #[expect(clippy::disallowed_methods, reason = "the program itself reads no environment outside of `config`")]
    let given = std::env::var("PORCHLIGHT_COMMIT").ok().filter(|commit| !commit.is_empty());
    let version = match given.or_else(commit) {
        Some(commit) => concat!(env!("CARGO_PKG_VERSION"), " (").to_owned() + &commit + ")",
        None => env!("CARGO_PKG_VERSION").to_owned(),
    };
    println!("cargo:rustc-env=PORCHLIGHT_VERSION={version}");
}

/// Returns the commit of a clone, or `None` if the sources are no clone or there is no git.
fn commit() -> Option<String> {
    // Git writes this file whenever the commit changes.
    let log = Path::new(".git/logs/HEAD");
    if !log.exists() {
        return None;
    }
    println!("cargo:rerun-if-changed={}", log.display());
    let git = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output().ok()?;
    let commit = String::from_utf8(git.stdout).ok()?;
    git.status.success().then(|| commit.trim().to_owned())
}
