//! The program: sets the allocator and calls [`porchlight::cli::main`].

use std::process::ExitCode;

// Chosen for throughput: each request makes many small allocations, on several threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    porchlight::cli::main()
}
