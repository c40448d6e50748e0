//! Records what commands change, for the page Activity of the desk.

use super::terminal::eprint_line;
use crate::actions::record_change;
use crate::clock::Clock;
use crate::domain::desk::{Actor, Change};
use crate::store::Store;

/// A failure is said and no more: what was done stays done.
pub(super) async fn record(store: &Store, change: Change) {
    if let Err(failure) = record_change(store, &Actor::Command, &change, Clock::System.now()).await {
        eprint_line(&format!("The desk does not list this under Activity: {failure}."));
    }
}
