//! The connections or requests that each client has open at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::domain::client::Client;

/// Clients that have none open are not in the map, so it is as bounded as the number of connections.
#[derive(Debug)]
pub(super) struct OpenCounts {
    /// How many one client may have.
    max: usize,
    counts: Mutex<HashMap<Client, usize>>,
}

/// The right of one connection or request to be open. Dropping it ends that.
#[derive(Debug)]
pub struct ClientSlot(Option<(Client, Arc<OpenCounts>)>);

impl ClientSlot {
    /// One that is not counted.
    pub(super) const UNLIMITED: Self = Self(None);
}

impl OpenCounts {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, counts: Mutex::default() })
    }

    /// Returns `None` if the client has as many as it may have.
    pub(super) fn open(self: &Arc<Self>, client: Client) -> Option<ClientSlot> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(client).or_default();
        if *count >= self.max {
            return None;
        }
        *count += 1;
        Some(ClientSlot(Some((client, Arc::clone(self)))))
    }
}

impl Drop for ClientSlot {
    fn drop(&mut self) {
        let Some((client, counts)) = self.0.take() else { return };
        let mut counts = counts.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_ends_makes_room_for_another_and_the_last_one_leaves_nothing() {
        let counts = OpenCounts::new(3);
        let (client, other) = (Client::of([203, 0, 113, 7].into()), Client::of([203, 0, 113, 8].into()));
        let mut slots: Vec<_> = (0..3).map(|_| counts.open(client).unwrap()).collect();
        assert!(counts.open(client).is_none());
        assert!(counts.open(other).is_some());
        slots.pop();
        slots.push(counts.open(client).unwrap());
        assert!(counts.open(client).is_none());
        slots.clear();
        assert!(counts.counts.lock().unwrap().is_empty());
    }
}
