//! `porchlight serve`

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};
use tracing::Level;

use super::{CommandFailure, eprint_line};
use crate::clock::Clock;
use crate::config::Settings;
use crate::serve::{RunningService, start};

pub(super) fn run(settings: Settings, watch: bool) -> Result<(), CommandFailure> {
    disable_huge_pages();
    raise_file_limit();
    tracing_subscriber::fmt()
        .with_max_level(Level::INFO)
        .with_target(false)
        .with_writer(std::io::stderr)
        // A failed write to the log must not stop the service.
        .log_internal_errors(false)
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let running = start(settings, Clock::System).await?;
        if watch {
            running.watch_site();
        }
        print_summary(&running);
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        eprint_line("Stopping: finishing requests in progress.");
        running.stop().await;
        Ok(())
    })
}

/// Disables transparent huge pages, which would double the resident memory of the service. A failure is ignored.
fn disable_huge_pages() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// Raises the soft limit of open files to the hard limit: every connection is a file descriptor, and the soft limit is
/// often 1,024. A failure is ignored; clients then wait for a free connection.
fn raise_file_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

fn print_summary(running: &RunningService) {
    eprint_line(&format!("Porchlight {} is serving {}", env!("CARGO_PKG_VERSION"), running.base_url()));
    eprint_line(&format!("  listening on  {}", running.address()));
    if let Some(address) = running.ops_address() {
        eprint_line(&format!("  dashboard     http://{address}/"));
    }
    eprint_line(&format!("  data folder   {}", running.data_dir().display()));
    eprint_line(&format!("  database      {}", running.database()));
    if let Some(relay) = running.relay() {
        eprint_line(&format!("  mail          through {relay}"));
    }
    for hint in running.setup_hints() {
        eprint_line(&format!("  note          {hint}"));
    }
}
