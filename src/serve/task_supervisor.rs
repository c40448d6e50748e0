//! Runs the background tasks and notices when one of them panics or ends before shutdown starts.
//!
//! If a task ends that the service cannot run without, the process stops, so that systemd or another supervisor restarts
//! it. Other tasks are restarted here, and counted.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::test_panic;
use crate::web::Metrics;

/// Pause before a task is started again.
const RESTART_DELAY: Duration = Duration::from_secs(5);

/// Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Supervisor {
    stop: CancellationToken,
    tasks: TaskTracker,
    /// The first essential task that ended.
    failed: watch::Sender<Option<&'static str>>,
    metrics: Metrics,
}

impl Supervisor {
    pub(super) fn new(stop: CancellationToken, tasks: TaskTracker, metrics: Metrics) -> Self {
        Self { stop, tasks, failed: watch::Sender::new(None), metrics }
    }

    /// Runs a task that must not end before shutdown starts.
    pub(super) fn spawn_essential(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let supervisor = self.clone();
        self.tasks.spawn(async move {
            catch_panic(name, task).await;
            supervisor.ended(name);
        });
    }

    /// Watches a task that runs already and must not end before shutdown starts. The returned handle ends with it.
    pub(super) fn watch(&self, name: &'static str, task: JoinHandle<()>) -> JoinHandle<()> {
        let supervisor = self.clone();
        tokio::spawn(async move {
            catch_panic(name, async { task.await.unwrap_or_default() }).await;
            supervisor.ended(name);
        })
    }

    /// Runs a task that is started again, and counted, if it ends before shutdown starts.
    pub(super) fn spawn_restarting<T>(
        &self,
        name: &'static str,
        start: impl Fn(CancellationToken) -> T + Send + 'static,
    ) where
        T: Future<Output = ()> + Send + 'static,
    {
        let (stop, metrics) = (self.stop.clone(), self.metrics.clone());
        self.tasks.spawn(async move {
            loop {
                catch_panic(name, start(stop.clone())).await;
                if stop.run_until_cancelled(sleep(RESTART_DELAY)).await.is_none() {
                    return;
                }
                tracing::error!(task = name, "a background task ended unexpectedly and is started again");
                metrics.record_task_restart(name);
            }
        });
    }

    /// Waits until an essential task has ended, and returns its name.
    pub(super) async fn failed(&self) -> &'static str {
        let mut failed = self.failed.subscribe();
        match failed.wait_for(Option::is_some).await.map(|name| *name) {
            Ok(Some(name)) => name,
            _ => std::future::pending().await,
        }
    }

    fn ended(&self, name: &'static str) {
        if !self.stop.is_cancelled() {
            self.failed.send_if_modified(|failed| failed.replace(name).is_none());
        }
    }
}

/// Runs a task until it ends or panics, which the panic hook has logged.
async fn catch_panic(name: &'static str, task: impl Future<Output = ()>) {
    let task = async {
        test_panic(name);
        task.await;
    };
    if AssertUnwindSafe(task).catch_unwind().await.is_err() {
        tracing::error!(task = name, "a background task panicked");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    fn supervisor() -> Supervisor {
        Supervisor::new(CancellationToken::new(), TaskTracker::new(), Metrics::new())
    }

    #[tokio::test]
    async fn an_essential_task_that_ends_or_panics_is_named() {
        let ends = supervisor();
        ends.spawn_essential("first", async {});
        assert_eq!(ends.failed().await, "first");

        let panics = supervisor();
        panics.spawn_essential("second", async { panic!("planted") });
        assert_eq!(panics.failed().await, "second");

        let watched = supervisor();
        let task = watched.watch("third", tokio::spawn(async { panic!("planted") }));
        assert_eq!(watched.failed().await, "third");
        task.await.unwrap();
    }

    #[tokio::test]
    async fn a_task_may_end_after_shutdown_has_started() {
        let supervisor = supervisor();
        supervisor.stop.cancel();
        supervisor.spawn_essential("first", async {});
        supervisor.tasks.close();
        supervisor.tasks.wait().await;
        assert!(supervisor.failed().now_or_never().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn another_task_that_panics_is_started_again_and_counted_until_shutdown() {
        let (supervisor, starts) = (supervisor(), Arc::new(AtomicUsize::new(0)));
        let started = Arc::clone(&starts);
        supervisor.spawn_restarting("first", move |stop| {
            let count = started.fetch_add(1, Ordering::Relaxed) + 1;
            async move {
                match count {
                    1 => panic!("planted"),
                    2 => {}
                    _ => stop.cancel(),
                }
            }
        });
        supervisor.tasks.close();
        supervisor.tasks.wait().await;
        assert_eq!(starts.load(Ordering::Relaxed), 3);
        let (mut registry, mut metrics) = (Registry::default(), String::new());
        supervisor.metrics.register(&mut registry);
        encode(&mut metrics, &registry).unwrap();
        assert!(metrics.contains("task_restarts_total{task=\"first\"} 2"), "{metrics}");
        assert!(supervisor.failed().now_or_never().is_none());
    }
}
