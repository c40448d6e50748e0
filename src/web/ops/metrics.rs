//! `/metrics`: the metrics of this instance and of the database, in the `OpenMetrics` text format.

use axum::response::{IntoResponse as _, Response};
use http::header::CONTENT_TYPE;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::actions::{BackupState, OpsSummary};
use crate::logging;
use crate::web::app::App;
use crate::web::refusal::Refusal;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A label set of one label: its name and its value.
type Label = [(&'static str, &'static str); 1];

pub(super) async fn metrics(app: &App) -> Response {
    let mut registry = Registry::with_prefix("porchlight");
    app.metrics.register(&mut registry);
    let service = &app.service;
    let writer = &service.writer;
    registry.register("writer_waiting", "Writes in the queue of the writer", gauge(writer.waiting() as u64));
    registry.register("writer_batch_size", "Writes committed in one transaction", writer.batch_sizes());
    let refused = Family::<Label, Counter>::default();
    for refusal in Refusal::ALL {
        refused.get_or_create(&[("reason", refusal.as_str())]).inc_by(app.refused(refusal));
    }
    registry.register("refused", "Requests and connections that were refused, by reason", refused);
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    let dropped = Counter::<u64>::default();
    dropped.inc_by(logging::dropped_lines());
    registry.register("log_lines_dropped", "Lines of the log that could not be written in time", dropped);
    registry.register("build_info", "The version of Porchlight", gauges([(version, 1)]));

    let summary = service.cached_summary.recent(&service.ops_pool, service.clock.now()).await;
    registry.register("database_up", "Whether the database can be read: 1 or 0", gauge(u64::from(summary.is_ok())));
    if let Ok(summary) = summary {
        register_summary(&summary, &mut registry);
    }
    if let Ok(backup) = BackupState::of(&service.ops_pool, service.backs_up, service.clock.now()).await {
        let failing = gauge(u64::from(backup.problem().is_some()));
        registry.register("backup_failing", "Whether the backup fails or is overdue: 1 or 0", failing);
        if let Some(age) = backup.age() {
            registry.register("backup_age_seconds", "Age of the last backup", gauge(age.as_secs()));
        }
    }
    let mut text = String::new();
    // Writing to a `String` cannot fail.
    let _ = encode(&mut text, &registry);
    ([(CONTENT_TYPE, OPEN_METRICS)], text).into_response()
}

/// Registers what is read from the database, and is the same on every instance.
fn register_summary(summary: &OpsSummary, registry: &mut Registry) {
    let state = |name| [("state", name)];
    let OpsSummary { backlog, letter, totals, outbox_age, update_checks } = summary;
    let unsent = [("waiting", backlog.waiting), ("under_way", backlog.leased), ("failed", backlog.failed)];
    let unsent = gauges(unsent.map(|(name, count)| (state(name), count)));
    registry.register("outbox_messages", "Messages not yet forwarded to the makers, by state", unsent);
    let age = gauge(outbox_age.as_secs());
    registry.register("outbox_oldest_seconds", "Age of the oldest message that is still to be forwarded", age);
    let letter = letter.as_ref().map(|letter| letter.counts).unwrap_or_default();
    let [states @ .., (_, bounced)] = letter.named();
    let states = gauges(states.map(|(name, count)| (state(name), count)));
    registry.register("letter_recipients", "Recipients of the most recent letter, by state", states);
    let help = "Recipients of the most recent letter whose copy was returned as undeliverable";
    registry.register("letter_bounced_recipients", help, gauge(bounced));
    let counts = Family::<Label, Counter>::default();
    for (name, times) in totals.named() {
        counts.get_or_create(&[("what", name)]).inc_by(times);
    }
    registry.register("counted", "Events counted since the database was created; the same on every instance", counts);
    let checks = Family::<[(&'static str, String); 1], Counter>::default();
    for (version, times) in update_checks {
        checks.get_or_create(&[("version", version.clone())]).inc_by(*times);
    }
    registry.register("update_checks", "Requests of the appcast by Sparkle, by version of the app", checks);
}

fn gauge(value: u64) -> Gauge {
    let gauge = Gauge::default();
    gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
    gauge
}

fn gauges<const N: usize>(values: [(Label, u64); N]) -> Family<Label, Gauge> {
    let family = Family::<Label, Gauge>::default();
    for (label, value) in values {
        family.get_or_create(&label).set(i64::try_from(value).unwrap_or(i64::MAX));
    }
    family
}
