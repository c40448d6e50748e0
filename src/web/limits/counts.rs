//! What is counted per client: the token buckets of its requests, and what it has open at once. Both are bounded in number.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::limits::MAX_CLIENT_BUCKETS;
use crate::domain::network::{Client, Network};
use crate::domain::rate_limit::RateLimit;
use crate::domain::time::Timestamp;
use crate::web::refusal::ClientLimit;

/// How often the buckets that are full again are forgotten, and with them the addresses of their clients.
const PURGE_INTERVAL: Duration = Duration::from_mins(1);

/// After how long the connections of networks that have half as many make room, too. Each looks once a second, and over HTTP/2 it
/// takes another second to close one.
const HALVING_INTERVAL: Duration = Duration::from_secs(3);

/// The token buckets of all clients.
#[derive(Debug, Default)]
pub(super) struct Buckets(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// When each bucket is full again. A bucket that is not in the map is full. The hash function has a random key, so
    /// clients cannot choose addresses that collide.
    full_at: HashMap<Bucket, Timestamp>,
    purged_at: Option<Timestamp>,
}

/// The place among the rates of its limit, and whose it is.
type Bucket = (ClientLimit, usize, Network);

impl Buckets {
    /// Takes a token from each bucket of the client and of the networks that it is in, or from none.
    pub(super) fn take(&self, client: Client, limit: ClientLimit, now: Timestamp) -> Result<(), Duration> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.purged_at.is_none_or(|purged_at| purged_at.until(now) >= PURGE_INTERVAL) {
            state.purge(now);
        }
        let buckets = || {
            let rates =
                move |network| limit.rates().enumerate().map(move |(index, rate)| (rate, (limit, index, network)));
            client.networks().flat_map(rates)
        };
        let waits = buckets().filter_map(|(rate, bucket)| state.full_again(rate, &bucket, now).err());
        if let Some(wait) = waits.max() {
            return Err(wait);
        }
        for (rate, bucket) in buckets() {
            if let Ok(full_at) = state.full_again(rate, &bucket, now) {
                if state.full_at.len() >= MAX_CLIENT_BUCKETS && !state.full_at.contains_key(&bucket) {
                    state.make_room(now);
                }
                state.full_at.insert(bucket, full_at);
            }
        }
        Ok(())
    }
}

impl State {
    /// When the bucket is full again after a token is taken.
    fn full_again(&self, rate: RateLimit, bucket: &Bucket, now: Timestamp) -> Result<Timestamp, Duration> {
        let (_, _, network) = bucket;
        rate.times(network.share).take(self.full_at.get(bucket).copied(), now)
    }

    /// Removes the buckets that are full by now.
    fn purge(&mut self, now: Timestamp) {
        self.full_at.retain(|_, full_at| *full_at > now);
        self.purged_at = Some(now);
    }

    /// Removes the buckets that are full by now. If many remain, also removes those that are full soonest, until half of
    /// the room is free, so that this is done rarely.
    fn make_room(&mut self, now: Timestamp) {
        self.purge(now);
        let excess = self.full_at.len().saturating_sub(MAX_CLIENT_BUCKETS / 2);
        if excess > 0 {
            let mut times: Vec<_> = self.full_at.values().copied().collect();
            let (_, &mut last_removed, _) = times.select_nth_unstable(excess - 1);
            self.full_at.retain(|_, full_at| *full_at > last_removed);
        }
    }
}

/// The connections or requests that each client has open at once. Clients that have none open are not in the map, so it is as
/// bounded as the number of connections.
#[derive(Debug)]
pub(super) struct OpenCounts {
    /// How many one client may have.
    max: usize,
    counts: Mutex<HashMap<Network, usize>>,
    /// How many wait for a place because all are taken.
    waiting: AtomicUsize,
    /// Since when somebody has waited, and how many the largest network had then.
    full: Mutex<Option<(Instant, usize)>>,
}

/// The right of one connection or request to be open. Dropping it ends that.
#[derive(Debug)]
pub struct ClientSlot(Option<(Client, Arc<OpenCounts>)>);

impl ClientSlot {
    /// One that is not counted.
    pub const UNLIMITED: Self = Self(None);

    /// Whether the connection has to be closed if it is idle, because all are taken and its network has many.
    pub fn has_to_make_room(&self) -> bool {
        self.0.as_ref().is_some_and(|(client, counts)| counts.has_to_make_room(*client))
    }
}

/// While it exists, idle connections make room.
#[derive(Debug)]
pub struct WaitForPlace(Arc<OpenCounts>);

impl OpenCounts {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, counts: Mutex::default(), waiting: AtomicUsize::new(0), full: Mutex::default() })
    }

    /// Returns `None` if the client, or a network that it is in, has as many as it may have.
    pub(super) fn open(self: &Arc<Self>, client: Client) -> Option<ClientSlot> {
        let mut counts = self.lock();
        let is_full =
            |network: Network| counts.get(&network).is_some_and(|count| *count >= self.max * network.share as usize);
        if client.networks().any(is_full) {
            return None;
        }
        for network in client.networks() {
            *counts.entry(network).or_default() += 1;
        }
        Some(ClientSlot(Some((client, Arc::clone(self)))))
    }

    pub(super) fn wait_for_place(self: &Arc<Self>) -> WaitForPlace {
        if self.waiting.fetch_add(1, Ordering::Relaxed) == 0 {
            let largest = self.lock().values().copied().max().unwrap_or_default();
            *self.full() = Some((Instant::now(), largest));
        }
        WaitForPlace(Arc::clone(self))
    }

    /// First the connections of the largest network make room, and with time those of networks that have half as many, and so on.
    fn has_to_make_room(&self, client: Client) -> bool {
        if self.waiting.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let Some((since, largest)) = *self.full() else { return false };
        let halvings = since.elapsed().as_secs() / HALVING_INTERVAL.as_secs();
        let from = largest.checked_shr(u32::try_from(halvings).unwrap_or(u32::MAX)).unwrap_or_default();
        self.lock().get(&client.widest_network()).is_some_and(|count| *count >= from)
    }

    fn full(&self) -> MutexGuard<'_, Option<(Instant, usize)>> {
        self.full.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Network, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WaitForPlace {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for ClientSlot {
    fn drop(&mut self) {
        let Some((client, counts)) = self.0.take() else { return };
        let mut counts = counts.lock();
        for network in client.networks() {
            if let Some(count) = counts.get_mut(&network) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(&network);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv6Addr};

    use super::*;

    const NOW: Timestamp = Timestamp::from_unix_millis(1_794_744_000_000);

    /// Each in a /48 of its own.
    fn client(number: usize) -> Client {
        Client::of(IpAddr::V6(Ipv6Addr::from_bits((number as u128) << 80)))
    }

    /// One of the 65,536 clients of a /48, of which 256 each share a /56.
    fn neighbour(number: u16) -> Client {
        Client::of(IpAddr::V6(Ipv6Addr::from_bits(u128::from(number) << 64)))
    }

    fn len(buckets: &Buckets) -> usize {
        buckets.0.lock().unwrap().full_at.len()
    }

    #[test]
    fn a_flood_from_many_networks_does_not_grow_the_memory() {
        let buckets = Buckets::default();
        for number in 0..3 * MAX_CLIENT_BUCKETS {
            buckets.take(client(number), ClientLimit::Messages, NOW).unwrap();
            assert!(len(&buckets) <= MAX_CLIENT_BUCKETS);
        }
    }

    #[test]
    fn buckets_that_are_full_again_are_forgotten_first_and_empty_ones_last() {
        let buckets = Buckets::default();
        let busy = client(usize::MAX);
        for _ in 0..ClientLimit::Messages.rate().burst {
            buckets.take(busy, ClientLimit::Messages, NOW).unwrap();
        }
        for number in 0..MAX_CLIENT_BUCKETS {
            buckets.take(client(number), ClientLimit::Signups, NOW).unwrap();
        }
        let wait = buckets.take(busy, ClientLimit::Messages, NOW);
        assert_eq!(wait, Err(ClientLimit::Messages.rate().interval()));
        // All but the busy client's are full by then.
        let later = NOW.after(Duration::from_secs(1));
        for number in 0..MAX_CLIENT_BUCKETS {
            buckets.take(client(number), ClientLimit::McpRequests, later).unwrap();
        }
        assert!(buckets.take(busy, ClientLimit::Messages, later).is_err());
    }

    #[test]
    fn a_client_is_forgotten_when_its_buckets_are_full_again() {
        let buckets = Buckets::default();
        for number in 0..100 {
            buckets.take(client(number), ClientLimit::UnknownTokens, NOW).unwrap();
        }
        let last = client(100);
        buckets.take(last, ClientLimit::UnknownTokens, NOW.after(PURGE_INTERVAL)).unwrap();
        assert_eq!(len(&buckets), last.networks().count());
    }

    #[test]
    fn a_56_gets_at_most_four_times_and_a_48_sixteen_times_what_one_client_gets() {
        for limit in ClientLimit::ALL {
            let buckets = Buckets::default();
            let burst = limit.rate().burst as usize;
            let takes = |number| {
                let results = std::iter::repeat_with(|| buckets.take(neighbour(number), limit, NOW));
                results.take_while(Result::is_ok).count()
            };
            let within = |numbers: std::ops::Range<u16>| numbers.map(takes).collect::<Vec<_>>();
            assert_eq!(within(0..6), [burst, burst, burst, burst, 0, 0], "{limit:?}");
            let other_56s: usize = within(256..20 * 256).iter().sum();
            assert_eq!(other_56s, 12 * burst, "{limit:?}");
            assert_eq!(buckets.take(client(1), limit, NOW), Ok(()));
        }
    }

    #[test]
    fn a_client_is_never_accepted_more_often_in_a_day_than_the_limit_says_and_the_wait_is_true() {
        let buckets = Buckets::default();
        let (mut now, mut taken) = (NOW, 0);
        loop {
            match buckets.take(client(1), ClientLimit::Messages, now) {
                Ok(()) => taken += 1,
                Err(wait) => {
                    now = now.after(wait);
                    if NOW.until(now) > Duration::from_hours(24) {
                        break;
                    }
                    assert_eq!(buckets.take(client(1), ClientLimit::Messages, now), Ok(()), "after {wait:?}");
                    taken += 1;
                }
            }
        }
        assert_eq!(taken, ClientLimit::Messages.per_day().unwrap());
    }

    #[test]
    fn clients_and_limits_are_counted_separately() {
        let buckets = Buckets::default();
        while buckets.take(client(1), ClientLimit::Messages, NOW).is_ok() {}
        assert!(buckets.take(client(2), ClientLimit::Messages, NOW).is_ok());
        assert!(buckets.take(client(1), ClientLimit::Signups, NOW).is_ok());
    }

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

    #[test]
    fn connections_of_a_network_are_counted_together() {
        let counts = OpenCounts::new(2);
        let slots: Vec<_> = (0..20).filter_map(|number| counts.open(neighbour(number))).collect();
        assert_eq!(slots.len(), 8);
        let slots: Vec<_> = (0..40).filter_map(|number| counts.open(neighbour(number * 256))).chain(slots).collect();
        assert_eq!(slots.len(), 32);
        assert!(counts.open(client(1)).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn connections_of_the_largest_network_make_room_first() {
        let counts = OpenCounts::new(100);
        let slots_of = |number, count| (0..count).map(|_| counts.open(client(number)).unwrap()).collect::<Vec<_>>();
        let (large, medium, small) = (slots_of(1, 8), slots_of(2, 4), slots_of(3, 1));
        let make_room = || [&large, &medium, &small].map(|slots| slots[0].has_to_make_room());
        assert_eq!(make_room(), [false; 3]);
        let waiting = counts.wait_for_place();
        for expected in [[true, false, false], [true, true, false], [true, true, false], [true; 3], [true; 3]] {
            // Others who wait change nothing.
            drop(counts.wait_for_place());
            assert_eq!(make_room(), expected);
            tokio::time::advance(HALVING_INTERVAL).await;
        }
        assert!(!ClientSlot::UNLIMITED.has_to_make_room());
        drop(waiting);
        assert_eq!(make_room(), [false; 3]);
    }
}
