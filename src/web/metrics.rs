//! What this instance has seen since it started, in the numbers that Prometheus reads.
//!
//! Every label has a small set of values: routes are those of the table, versions those that were
//! published, clients a handful of classes. Nothing that a caller sent ever becomes one.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::mcp::client::Client;
use crate::domain::version::Version;

/// Cheap to copy; the copies are the same numbers.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    requests: Family<RequestLabels, Histogram>,
    calls: Family<CallLabels, Counter>,
    greetings: Family<ClientLabels, Counter>,
    images: Family<ImageLabels, Counter>,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct RequestLabels {
    route: String,
    status: u16,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct CallLabels {
    tool: &'static str,
    client: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct ClientLabels {
    client: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct ImageLabels {
    version: String,
}

const ASSETS: &str = "/assets/";

impl Metrics {
    pub(crate) fn new() -> Self {
        Self {
            requests: Family::new_with_constructor(durations),
            calls: Family::default(),
            greetings: Family::default(),
            images: Family::default(),
        }
    }

    /// `route` as the log has it. The names of assets change with what is in them.
    pub(crate) fn answered(&self, route: &str, status: u16, took: Duration) {
        let route = if route.starts_with(ASSETS) { "/assets/*" } else { route };
        let labels = RequestLabels { route: route.to_owned(), status };
        self.requests.get_or_create(&labels).observe(took.as_secs_f64());
    }

    pub(crate) fn tool_called(&self, tool: &'static str, client: Client) {
        self.calls.get_or_create(&CallLabels { tool, client: client.as_str() }).inc();
    }

    pub(crate) fn greeted(&self, client: Client) {
        self.greetings.get_or_create(&ClientLabels { client: client.as_str() }).inc();
    }

    pub(crate) fn image_sent(&self, version: &Version) {
        self.images.get_or_create(&ImageLabels { version: version.to_string() }).inc();
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        let help = "Time from the head of a request to the head of its answer, by route and status";
        registry.register("http_request_duration_seconds", help, self.requests.clone());
        registry.register("mcp_tool_calls", "Calls by tool and class of client", self.calls.clone());
        registry.register("mcp_initializations", "MCP clients that said hello, by class", self.greetings.clone());
        registry.register("images_sent", "Disk images that began to be sent, by version", self.images.clone());
    }
}

fn durations() -> Histogram {
    Histogram::new([0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 2.5, 5.0])
}
