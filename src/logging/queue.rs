//! A bounded queue of lines between the threads that log and the one thread that writes.
//!
//! Pushing a line never waits for the reader of the log. If the queue is full, the line is dropped and counted, and the
//! next lines that are written say how many were.

use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Most bytes that wait for the writer: a few thousand lines.
const CAPACITY: usize = 256 * 1024;
/// Pause after a write, in which lines collect, so that a busy service makes one system call for many.
const COLLECT_TIME: Duration = Duration::from_millis(5);
/// Pause before a write is repeated that a non-blocking reader did not take.
const RETRY_DELAY: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
pub(super) struct LineQueue {
    state: Mutex<State>,
    /// Notified when the first line is pushed into an empty queue.
    pushed: Condvar,
    /// Notified when the writer has finished a batch.
    written: Condvar,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// Whole lines, waiting to be written.
    pending: Vec<u8>,
    pending_lines: u64,
    /// Lines that were dropped and not reported yet.
    unreported: u64,
    is_writing: bool,
}

impl LineQueue {
    /// Appends a line, which ends in a line break, or drops it if the queue is full.
    pub(super) fn push(&self, line: &str) {
        let mut state = self.lock();
        if state.pending.len() + line.len() > CAPACITY {
            state.unreported += 1;
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let was_empty = state.pending.is_empty();
        state.pending.extend_from_slice(line.as_bytes());
        state.pending_lines += 1;
        drop(state);
        if was_empty {
            self.pushed.notify_one();
        }
    }

    /// The number of lines that were dropped or could not be written.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Waits until everything is written, but not longer than `timeout`.
    pub(super) fn flush(&self, timeout: Duration) {
        let unwritten = |state: &mut State| state.is_writing || !state.pending.is_empty();
        let _ = self.written.wait_timeout_while(self.lock(), timeout, unwritten);
    }

    /// Writes batches of lines for as long as the process runs. `report` is the line that says how many were dropped.
    pub(super) fn write_to(&self, mut output: impl Write, report: impl Fn(u64) -> String) -> ! {
        loop {
            let empty = |state: &mut State| state.pending.is_empty();
            let mut state = self.pushed.wait_while(self.lock(), empty).unwrap_or_else(PoisonError::into_inner);
            let mut batch = std::mem::take(&mut *state);
            state.is_writing = true;
            drop(state);
            if batch.unreported > 0 {
                batch.pending.extend_from_slice(report(batch.unreported).as_bytes());
            }
            let is_written = write_all(&mut output, &batch.pending);
            let mut state = self.lock();
            state.is_writing = false;
            if !is_written {
                self.dropped.fetch_add(batch.pending_lines, Ordering::Relaxed);
                state.unreported += batch.pending_lines + batch.unreported;
            }
            drop(state);
            self.written.notify_all();
            std::thread::sleep(COLLECT_TIME);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether everything was written. Waits for a reader whose end does not block, as for any other.
fn write_all(output: &mut impl Write, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        match output.write(bytes) {
            Ok(0) => return false,
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(RETRY_DELAY),
            Err(_) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
    use std::sync::{Arc, PoisonError};

    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    /// Says when a write has begun, and ends it with the result that the test sends.
    struct Reader {
        begun: SyncSender<String>,
        results: Receiver<io::Result<()>>,
    }

    impl Write for Reader {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.begun.send(String::from_utf8_lossy(bytes).into_owned()).map_err(io::Error::other)?;
            self.results.recv().map_err(io::Error::other)?.map(|()| bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn start() -> (Arc<LineQueue>, Receiver<String>, SyncSender<io::Result<()>>) {
        let queue = Arc::new(LineQueue::default());
        let ((begun, writes), (sender, results)) = (sync_channel(0), sync_channel(0));
        let shared = Arc::clone(&queue);
        std::thread::spawn(move || shared.write_to(Reader { begun, results }, |count| format!("dropped {count}\n")));
        (queue, writes, sender)
    }

    #[test]
    fn a_push_does_not_wait_for_a_reader_that_stalls_and_the_gap_is_reported_where_it_is() {
        let (queue, writes, results) = start();
        queue.push("first\n");
        assert_eq!(writes.recv().unwrap(), "first\n");
        let mut kept = 0;
        while queue.dropped() < 3 {
            queue.push("a line while the reader stalls\n");
            kept += 1;
        }
        results.send(Ok(())).unwrap();
        let batch = writes.recv().unwrap();
        assert_eq!(batch.lines().count(), kept - 3 + 1);
        assert!(batch.ends_with("stalls\ndropped 3\n"), "{batch}");
        queue.push("last\n");
        results.send(Ok(())).unwrap();
        assert_eq!(writes.recv().unwrap(), "last\n");
        results.send(Ok(())).unwrap();
        queue.flush(LONG);
        assert_eq!(queue.dropped(), 3);
        assert!(!queue.state.lock().unwrap_or_else(PoisonError::into_inner).is_writing);
    }

    #[test]
    fn a_flush_does_not_wait_for_a_reader_that_stalls() {
        let (queue, writes, _results) = start();
        queue.push("first\n");
        assert_eq!(writes.recv().unwrap(), "first\n");
        queue.flush(Duration::ZERO);
    }

    #[test]
    fn lines_that_cannot_be_written_count_as_dropped_and_are_reported_once_they_can() {
        let (queue, writes, results) = start();
        queue.push("first\n");
        assert_eq!(writes.recv().unwrap(), "first\n");
        results.send(Err(ErrorKind::BrokenPipe.into())).unwrap();
        queue.flush(LONG);
        assert_eq!(queue.dropped(), 1);
        queue.push("second\n");
        assert_eq!(writes.recv().unwrap(), "second\ndropped 1\n");
        results.send(Err(ErrorKind::WouldBlock.into())).unwrap();
        assert_eq!(writes.recv().unwrap(), "second\ndropped 1\n");
        results.send(Ok(())).unwrap();
        queue.flush(LONG);
        assert_eq!(queue.dropped(), 1);
    }
}
