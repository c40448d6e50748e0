//! Files that are built into the program: a new one has to rebuild it.

#![expect(clippy::print_stdout, reason = "this is how a build script speaks to cargo")]

fn main() {
    println!("cargo:rerun-if-changed=content");
    println!("cargo:rerun-if-changed=migrations");
}
