//! `porchlight serve`

use std::io::IsTerminal;
use std::num::NonZero;
use std::pin::pin;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use super::failure::Failure;
use super::terminal::eprint_line;
use crate::clock::Clock;
use crate::config::{LogFormat, Settings};
use crate::logging;
use crate::serve::{RunningService, ServeFailure, notify_service_manager, start};
use crate::store::Database;

/// When the process ends at the latest, after the signal: it has ten seconds, and ends earlier unless a thread is stuck.
const EXIT_DEADLINE: Duration = Duration::from_millis(9500);

pub(super) fn run(settings: Settings, watch: bool) -> Result<(), Failure> {
    raise_file_limit();
    let default_format = if std::io::stderr().is_terminal() { LogFormat::Text } else { LogFormat::Logfmt };
    let log_format = settings.log_format.unwrap_or(default_format);
    logging::start(log_format, Clock::System)?;
    let runtime = Builder::new_multi_thread().worker_threads(worker_threads()).enable_all().build()?;
    let settings = Settings { watches_site: watch, ..settings };
    let result = runtime.block_on(serve(settings, log_format));
    // Do not wait for blocking tasks, such as a DNS lookup: their results are no longer needed.
    runtime.shutdown_background();
    result
}

/// All cores but one. That one is left to SQLite's thread or to PostgreSQL: on two cores the service stores more per second
/// with one thread for requests than with two, and a page takes a tenth less CPU time.
fn worker_threads() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    cores.saturating_sub(1).max(1)
}

/// Runs the service until a signal stops it, which is a success, or until it fails.
async fn serve(settings: Settings, log_format: LogFormat) -> Result<(), Failure> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut stopped = pin!(async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    });
    let mut hangup = signal(SignalKind::hangup())?;
    let start_alone = async {
        let lock = Database::from_settings(&settings)?.lock_for_service().await.map_err(ServeFailure::from)?;
        Ok::<_, Failure>((lock, start(settings, Clock::System).await?))
    };
    let (_lock, running) = tokio::select! {
        started = start_alone => started?,
        () = &mut stopped => return Ok(()),
    };
    log_summary(&running, log_format);
    notify_service_manager("READY=1");
    let read_again = async {
        while hangup.recv().await.is_some() {
            running.read_site_again();
        }
        std::future::pending::<()>().await;
    };
    let result = tokio::select! {
        () = stopped => Ok(()),
        () = read_again => Ok(()),
        failure = running.failed() => match failure {
            ServeFailure::Unsynced => end_at_once(&failure),
            other => Err(other.into()),
        },
    };
    tracing::info!("stopping: finishing requests in progress");
    notify_service_manager("STOPPING=1");
    exit_after_deadline(i32::from(result.is_err()));
    running.stop().await;
    result
}

/// Ends the process without closing the database, because SQLite would sync it then.
fn end_at_once(failure: &ServeFailure) -> ! {
    eprint_line(&failure.to_string());
    logging::flush();
    std::process::exit(1)
}

/// Ends the process if it has not ended within [`EXIT_DEADLINE`], whatever keeps it from doing so.
fn exit_after_deadline(code: i32) {
    std::thread::spawn(move || {
        std::thread::sleep(EXIT_DEADLINE);
        std::process::exit(code);
    });
}

/// Raises the soft limit of open files to the hard limit: every connection is a file descriptor, and the soft limit is
/// often 1,024. A failure is ignored; clients then wait for a free connection.
fn raise_file_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// Logs the addresses and databases of the service, and what is to be done next.
fn log_summary(running: &RunningService, format: LogFormat) {
    match format {
        LogFormat::Off => {}
        LogFormat::Text => print_summary(running),
        LogFormat::Logfmt | LogFormat::Json => {
            tracing::info!(
                version = env!("CARGO_PKG_VERSION"),
                base_url = %running.base_url,
                listen = %running.address,
                ops_listen = running.ops_address.map(display),
                desk = running.desk,
                data_dir = %running.data_dir.display(),
                database = %running.database,
                mail_server = running.relay.as_ref().map(display),
                "Porchlight is serving"
            );
            for note in running.notes.iter().chain(&running.setup_steps) {
                tracing::info!("{note}");
            }
        }
    }
}

fn print_summary(running: &RunningService) {
    eprint_line(&format!("Porchlight {} is serving {}", env!("CARGO_PKG_VERSION"), running.base_url));
    let mut lines = vec![("listening on", running.address.to_string())];
    lines
        .extend(running.redirect_addresses.iter().map(|address| ("redirecting", format!("http://{address} to https"))));
    lines.extend(running.ops_address.map(|address| ("dashboard", format!("http://{address}/"))));
    lines.extend(running.desk.iter().map(|url| ("desk", format!("{url} (`porchlight desk` signs you in)"))));
    lines.push(("data folder", running.data_dir.display().to_string()));
    lines.push(("database", running.database.to_string()));
    lines.extend(running.relay.as_ref().map(|relay| ("mail", format!("through {relay}"))));
    lines.extend(running.notes.iter().map(|note| ("note", note.clone())));
    let labels = std::iter::once("next").chain(std::iter::repeat("then"));
    lines.extend(labels.zip(running.setup_steps.iter().cloned()));
    for (label, text) in lines {
        eprint_line(&format!("  {label:<12}  {text}"));
    }
}
