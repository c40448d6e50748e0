//! `porchlight serve`

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};
use tracing::Level;

use super::{CommandFailure, tell};
use crate::clock::Clock;
use crate::config::Settings;
use crate::serve::{Running, start};

pub(super) fn run(settings: Settings, watch: bool) -> Result<(), CommandFailure> {
    keep_to_small_pages();
    open_as_many_files_as_allowed();
    tracing_subscriber::fmt()
        .with_max_level(Level::INFO)
        .with_target(false)
        .with_writer(std::io::stderr)
        // A log that cannot be written is no reason to end.
        .log_internal_errors(false)
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let running = start(settings, Clock::System).await?;
        if watch {
            running.watch_site();
        }
        greet(&running);
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tell("Stopping: finishing what is under way.");
        running.stop().await;
        Ok(())
    })
}

/// In pages of 2 MiB, which the kernel hands out where it can, the little that the service keeps would take twice the
/// memory. Where this is not to be had, it does.
fn keep_to_small_pages() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// Every connection is a file, and the limit to begin with is often a thousand. Where it stays, callers wait for a place.
fn open_as_many_files_as_allowed() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

fn greet(running: &Running) {
    tell(&format!("Porchlight {} serves {}", env!("CARGO_PKG_VERSION"), running.base_url()));
    tell(&format!("  listening on  {}", running.address()));
    if let Some(address) = running.ops_address() {
        tell(&format!("  dashboard     http://{address}/"));
    }
    tell(&format!("  data folder   {}", running.data_dir().display()));
    tell(&format!("  database      {}", running.database()));
    if let Some(relay) = running.relay() {
        tell(&format!("  mail          through {relay}"));
    }
    for note in running.notes() {
        tell(&format!("  not set up    {note}"));
    }
}
