//! The connections that each client has open.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::domain::client::Client;
use crate::domain::limits::MAX_CONNECTIONS_PER_CLIENT;

/// Clients that have no connection are not in the map, so it is as bounded as the number of connections.
#[derive(Debug, Default)]
pub(super) struct ConnectionCounts(Mutex<HashMap<Client, usize>>);

/// The right of one connection to be open. Dropping it ends that.
#[derive(Debug)]
pub struct ConnectionSlot(Option<(Client, Arc<ConnectionCounts>)>);

impl ConnectionSlot {
    /// A connection that is not counted.
    pub(super) const UNLIMITED: Self = Self(None);
}

impl ConnectionCounts {
    /// Returns `None` if the client has as many connections as it may have.
    pub(super) fn open(self: &Arc<Self>, client: Client) -> Option<ConnectionSlot> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(client).or_default();
        if *count >= MAX_CONNECTIONS_PER_CLIENT {
            return None;
        }
        *count += 1;
        Some(ConnectionSlot(Some((client, Arc::clone(self)))))
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let Some((client, counts)) = self.0.take() else { return };
        let mut counts = counts.0.lock().unwrap_or_else(PoisonError::into_inner);
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
    fn a_connection_that_ends_makes_room_for_another_and_the_last_one_leaves_nothing() {
        let counts = Arc::new(ConnectionCounts::default());
        let (client, other) = (Client::of([203, 0, 113, 7].into()), Client::of([203, 0, 113, 8].into()));
        let mut slots: Vec<_> = (0..MAX_CONNECTIONS_PER_CLIENT).map(|_| counts.open(client).unwrap()).collect();
        assert!(counts.open(client).is_none());
        assert!(counts.open(other).is_some());
        slots.pop();
        slots.push(counts.open(client).unwrap());
        assert!(counts.open(client).is_none());
        slots.clear();
        assert!(counts.0.lock().unwrap().is_empty());
    }
}
