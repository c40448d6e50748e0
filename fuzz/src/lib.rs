//! What the fuzz targets share. `trials/fuzz` builds and runs them.

mod resolver;
mod site;

pub use resolver::Resolver;
pub use site::{Answer, Site};

use std::path::PathBuf;
use std::sync::LazyLock;

/// The control of a target: if the environment asks for it, panics on one in eight of the inputs that the product accepts.
/// No seed is one of them, so the fuzzer has to change a seed to another input that is accepted.
pub fn planted_panic(accepted: bool, input: &[u8]) {
    static PLANTED: LazyLock<bool> = LazyLock::new(|| std::env::var_os("FUZZ_PLANTED_PANIC").is_some());
    if *PLANTED && accepted {
        let sum: usize = input.iter().map(|byte| usize::from(*byte)).sum();
        assert!(sum % 8 != 3, "the planted panic");
    }
}

/// A path for files of this process, in the folder for temporary files. `trials/fuzz` deletes them.
pub fn temporary(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("fuzz-{}-{name}", std::process::id()))
}
