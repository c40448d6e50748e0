//! The log of a running service: lines on standard error. Layer 1.
//!
//! Events of `tracing`, panics and the final error sentence go through one queue, so that no request and no shutdown
//! waits for the reader of the log. The log belongs to the process, as standard error does.

mod line;
mod queue;

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::panic::PanicHookInfo;
use std::sync::OnceLock;
use std::time::Duration;

use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::clock::Clock;
use crate::config::LogFormat;
use line::Line;
use queue::LineQueue;

/// How long the end of the process waits for the reader of the log.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

static LOG: OnceLock<Log> = OnceLock::new();

#[derive(Debug)]
struct Log {
    format: LogFormat,
    clock: Clock,
    queue: LineQueue,
}

/// Sends everything that this process logs from now on to standard error, in this format. Only the first call of a
/// process has an effect.
pub fn start(format: LogFormat, clock: Clock) -> io::Result<()> {
    // A separate descriptor: a write to `io::stderr` holds a lock that all threads share.
    let stderr = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    if LOG.set(Log { format, clock, queue: LineQueue::default() }).is_err() {
        return Ok(());
    }
    std::thread::Builder::new().name("log".to_owned()).spawn(move || {
        if let Some(log) = LOG.get() {
            log.queue.write_to(stderr, |count| log.dropped_line(count));
        }
    })?;
    std::panic::set_hook(Box::new(log_panic));
    if format != LogFormat::Off {
        // It fails only if there is a subscriber already.
        let _ = tracing::subscriber::set_global_default(LogSubscriber);
    }
    Ok(())
}

/// Logs a sentence as an error, as it is in the formats for people. Returns `false` if there is no log.
pub fn report(sentence: &str) -> bool {
    let Some(log) = LOG.get() else { return false };
    match log.format {
        LogFormat::Text | LogFormat::Off => log.queue.push(&format!("{sentence}\n")),
        LogFormat::Logfmt | LogFormat::Json => {
            log.queue.push(&log.line(Level::ERROR, |line| line.message(sentence)));
        }
    }
    true
}

/// Waits until everything is written, but not for long.
pub fn flush() {
    if let Some(log) = LOG.get() {
        log.queue.flush(FLUSH_TIMEOUT);
    }
}

/// The number of lines that this process has dropped, because the log was not read fast enough or failed.
pub fn dropped_lines() -> u64 {
    LOG.get().map_or(0, |log| log.queue.dropped())
}

impl Log {
    /// Formats a line at the present time.
    fn line(&self, level: Level, fields: impl FnOnce(&mut Line)) -> String {
        let mut line = Line::begin(self.format, self.clock.now(), level);
        fields(&mut line);
        line.end()
    }

    fn dropped_line(&self, count: u64) -> String {
        self.line(Level::WARN, |line| {
            line.message("dropped lines of the log, because it was not read fast enough");
            line.number("lines", count);
        })
    }
}

/// Logs where a panic happened. Its message is logged only if it is constant: others may quote what a visitor sent.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let reason = panic.payload().downcast_ref::<&'static str>().copied();
    tracing::error!(location = panic.location().map(display), reason, "panicked");
}

/// Logs events of the level `INFO` and above. There are no spans.
struct LogSubscriber;

impl Subscriber for LogSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= Level::INFO
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::INFO)
    }

    fn event(&self, event: &Event<'_>) {
        if let Some(log) = LOG.get() {
            log.queue.push(&log.line(*event.metadata().level(), |line| event.record(line)));
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
