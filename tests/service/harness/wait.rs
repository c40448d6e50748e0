//! Waiting for something that happens elsewhere, with a deadline.

use std::process::Child;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use tokio::time::{sleep, timeout};

/// Far longer than anything here takes: only a hang takes that long.
pub const WATCHDOG: Duration = Duration::from_mins(1);

const FIRST_POLL: Duration = Duration::from_millis(1);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Polls until there is a value. `awaited` says in the panic message what never happened.
pub async fn wait_for<T>(awaited: &str, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    let polling = async {
        let mut pause = FIRST_POLL;
        loop {
            if let Some(value) = poll().await {
                return value;
            }
            sleep(pause).await;
            pause = (pause * 2).min(POLL_INTERVAL);
        }
    };
    let waited = timeout(WATCHDOG, polling).await;
    waited.unwrap_or_else(|_| panic!("waited {WATCHDOG:?} in vain for {awaited}"))
}

/// Polls until the condition holds.
pub async fn wait_until(awaited: &str, mut condition: impl AsyncFnMut() -> bool) {
    wait_for(awaited, async || condition().await.then_some(())).await;
}

/// Blocks until `wait` returns, and kills the child process if that takes too long.
pub fn with_deadline<T: Send + 'static>(
    child: Child,
    awaited: &str,
    wait: impl FnOnce(Child) -> T + Send + 'static,
) -> T {
    let (process, (sender, receiver)) = (rustix::process::Pid::from_child(&child), channel());
    std::thread::spawn(move || sender.send(wait(child)));
    match receiver.recv_timeout(WATCHDOG) {
        Ok(value) => value,
        Err(RecvTimeoutError::Disconnected) => panic!("the wait for {awaited} panicked"),
        Err(RecvTimeoutError::Timeout) => {
            let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
            panic!("waited {WATCHDOG:?} in vain for {awaited}")
        }
    }
}
