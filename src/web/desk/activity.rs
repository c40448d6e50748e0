//! Records what is changed over HTTP, for the page Activity of the desk.

use crate::actions::record_change;
use crate::domain::desk::{Actor, Change};
use crate::web::app::App;

/// A failure is logged and no more: what was done stays done.
pub(super) async fn record(app: &App, by: &Actor, change: &Change) {
    let service = &app.service;
    if let Err(failure) = record_change(&service.store, by, change, service.clock.now()).await {
        tracing::warn!(%failure, "a change was not recorded");
    }
}
