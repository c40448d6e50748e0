//! Parses the arguments, runs the command, and turns a failure into one sentence and an exit code.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    porchlight::cli::main()
}
