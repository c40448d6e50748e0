//! Files that are built into the program: a new one has to rebuild it.

fn main() {
    println!("cargo:rerun-if-changed=content");
    println!("cargo:rerun-if-changed=migrations");
}
