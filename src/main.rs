//! The program: sets up memory and calls [`porchlight::cli::main`].

use std::process::ExitCode;

// Chosen for throughput: each request makes many small allocations, on several threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    disable_huge_pages();
    porchlight::cli::main()
}

/// Disables transparent huge pages, which would double the resident memory of the service. Memory that was allocated before
/// keeps them, so this comes first. A failure is ignored.
fn disable_huge_pages() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}
