//! `/metrics`: what Prometheus reads, put together for each reading.

use std::collections::HashSet;

use axum::body::Body;
use axum::response::Response;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::actions::{OpsSummary, ops_summary};
use crate::web::app::App;

const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) async fn metrics(app: &App) -> Response {
    let mut registry = Registry::with_prefix("porchlight");
    app.metrics().register(&mut registry);
    let service = app.service();
    let writer = &service.writer;
    registry.register("writer_waiting", "Writes that wait to be stored", number(writer.waiting() as u64));
    registry.register("writer_batch_size", "Writes that were stored together", writer.batch_sizes());
    let version = Labelled { name: "version", value: env!("CARGO_PKG_VERSION") };
    registry.register("build_info", "The version of this program", gauges([(version, 1)]));

    let summary = ops_summary(service).await;
    registry.register("database_up", "Whether the database answers", number(u64::from(summary.is_ok())));
    if let Ok(summary) = summary {
        register_glance(&summary, &mut registry);
    }
    let mut text = String::new();
    // A String takes whatever is written to it.
    let _ = encode_registry(&mut text, &registry);
    let mut response = Response::new(Body::from(prometheus_text(&text)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PROMETHEUS_TEXT));
    response
}

/// What all instances together know, as it stands in the database.
fn register_glance(summary: &OpsSummary, registry: &mut Registry) {
    let state = |value| Labelled { name: "state", value };
    let OpsSummary { backlog, letter, totals, outbox_age } = summary;
    let unsent = [("waiting", backlog.waiting), ("under_way", backlog.leased), ("failed", backlog.failed)];
    let unsent = gauges(unsent.map(|(name, count)| (state(name), count)));
    registry.register("outbox_messages", "Messages that are not in the makers' mailbox yet", unsent);
    let age = number(outbox_age.as_secs());
    registry.register("outbox_oldest_seconds", "How long the oldest message waits that is not given up on", age);
    let letter = letter.as_ref().map(|letter| letter.counts).unwrap_or_default();
    let letter = gauges([
        (state("sent"), letter.sent),
        (state("waiting"), letter.waiting),
        (state("uncertain"), letter.uncertain),
        (state("refused"), letter.refused),
        (state("skipped"), letter.skipped),
    ]);
    registry.register("letter_recipients", "Recipients of the letter that was started last, by state", letter);
    let counts = Family::<Labelled, Counter>::default();
    for (value, times) in totals.named() {
        counts.get_or_create(&Labelled { name: "what", value }).inc_by(times);
    }
    registry.register("counted", "What was ever counted, by what it is; the same on all instances", counts);
}

/// One label whose values are ours.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Labelled {
    name: &'static str,
    value: &'static str,
}

impl EncodeLabelSet for Labelled {
    fn encode(&self, encoder: &mut prometheus_client::encoding::LabelSetEncoder) -> Result<(), std::fmt::Error> {
        [(self.name, self.value)].encode(encoder)
    }
}

fn number(value: u64) -> Gauge {
    let gauge = Gauge::default();
    gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
    gauge
}

fn gauges<const N: usize>(values: [(Labelled, u64); N]) -> Family<Labelled, Gauge> {
    let family = Family::<Labelled, Gauge>::default();
    for (labels, value) in values {
        family.get_or_create(&labels).set(i64::try_from(value).unwrap_or(i64::MAX));
    }
    family
}

/// The library writes `OpenMetrics`, in which the name of a counter lacks the `_total` of its samples.
/// In Prometheus' own text both are the same.
fn prometheus_text(open_metrics: &str) -> String {
    let counters: HashSet<_> = open_metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"))
        .map(str::to_owned)
        .collect();
    let mut text = String::with_capacity(open_metrics.len());
    for line in open_metrics.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some(keyword), Some(name), Some(rest)) if counters.contains(name) => {
                text.extend(["# ", keyword, " ", name, "_total ", rest]);
            }
            _ => text.push_str(line),
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_has_the_same_name_in_its_head_and_its_samples() {
        let open_metrics = "# HELP a_b Bs of a.\n# TYPE a_b counter\na_b_total{x=\"# TYPE a_b counter\"} 1\n\
                            # HELP a_c Cs.\n# TYPE a_c gauge\na_c 2\n";
        assert_eq!(
            prometheus_text(open_metrics),
            "# HELP a_b_total Bs of a.\n# TYPE a_b_total counter\na_b_total{x=\"# TYPE a_b counter\"} 1\n\
             # HELP a_c Cs.\n# TYPE a_c gauge\na_c 2\n"
        );
    }
}
