//! Metrics of this instance since it started, for Prometheus.
//!
//! Every label has a small, fixed set of values: known routes, published versions, known readers.
//! Nothing that a caller sent becomes a label.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::refusal::Refusal;
use crate::domain::releases::Version;
use crate::domain::statistics::Reader;

/// The name of a label, and its value.
type Label = (&'static str, &'static str);

/// Cheap to clone. Clones share the same counters.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    requests: Family<RequestLabels, Histogram>,
    tool_calls: Family<[Label; 2], Counter>,
    initializations: Family<[Label; 1], Counter>,
    images: Family<[(&'static str, String); 1], Counter>,
    refused: Arc<[AtomicU64; Refusal::ALL.len()]>,
    task_restarts: Family<[Label; 1], Counter>,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct RequestLabels {
    route: String,
    status: u16,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        Self {
            requests: Family::new_with_constructor(durations),
            tool_calls: Family::default(),
            initializations: Family::default(),
            images: Family::default(),
            refused: Arc::default(),
            task_restarts: Family::default(),
        }
    }

    /// Assets share one label, because their names change with their content.
    pub(crate) fn record_request(&self, route: &str, status: u16, elapsed: Duration) {
        let route = if route.starts_with("/assets/") { "/assets/*" } else { route };
        let labels = RequestLabels { route: route.to_owned(), status };
        self.requests.get_or_create(&labels).observe(elapsed.as_secs_f64());
    }

    pub(crate) fn record_tool_call(&self, tool: &'static str, client: Reader) {
        self.tool_calls.get_or_create(&[("tool", tool), ("client", client.name())]).inc();
    }

    pub(crate) fn record_initialization(&self, client: Reader) {
        self.initializations.get_or_create(&[("client", client.name())]).inc();
    }

    pub(crate) fn record_image(&self, version: &Version) {
        self.images.get_or_create(&[("version", version.to_string())]).inc();
    }

    pub(crate) fn record_refusal(&self, refusal: Refusal) {
        self.refused[refusal as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of calls of [`Self::record_refusal`] with this reason.
    pub(crate) fn refused(&self, refusal: Refusal) -> u64 {
        self.refused[refusal as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn record_task_restart(&self, task: &'static str) {
        self.task_restarts.get_or_create(&[("task", task)]).inc();
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        let help = "Time from the head of a request to the head of its response, by route and status";
        registry.register("http_request_duration_seconds", help, self.requests.clone());
        registry.register("mcp_tool_calls", "Calls by tool and client", self.tool_calls.clone());
        registry.register(
            "mcp_initializations",
            "MCP clients that initialized, by client",
            self.initializations.clone(),
        );
        let help = "Background tasks that ended unexpectedly and were started again, by task";
        registry.register("task_restarts", help, self.task_restarts.clone());
        registry.register("images_sent", "Disk images whose transfer started, by version", self.images.clone());
    }
}

fn durations() -> Histogram {
    Histogram::new([0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 2.5, 5.0])
}
