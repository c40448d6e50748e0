//! How many requests and connections a client or a peer may have, on the public listener and on that of the makers.
//!
//! Peers in local networks are not limited, because they are proxies or colleagues, unless a trusted proxy names them. The
//! ops listener limits them, too.
//! An address is used for this alone. It is neither stored nor logged.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use http::request::Parts;

use super::counts::{Buckets, ClientSlot, OpenCounts, WaitForPlace};
use super::forwarding_headers;
use crate::actions::Service;
use crate::clock::Clock;
use crate::config::ClientSettings;
use crate::domain::limits::{
    MAX_CONNECTIONS_PER_CLIENT, MAX_OPS_CONNECTIONS_PER_PEER, MAX_REQUESTS_IN_FLIGHT_PER_CLIENT,
};
use crate::domain::network::{Client, Peer};
use crate::domain::rate_limit::Hourly;
use crate::domain::signups::DownloadRequest;
use crate::web::metrics::Metrics;
use crate::web::problem::Problem;
use crate::web::refusal::{ClientLimit, Refusal};

/// A client that has exceeded a limit. The handler decides whether that or an earlier check decides the response.
#[derive(Clone, Debug)]
pub struct OverLimit {
    refusal: Refusal,
    /// How long until the client may send the next request.
    wait: Duration,
}

#[derive(Debug)]
pub(crate) struct ClientLimits {
    settings: ClientSettings,
    buckets: Buckets,
    connections: Arc<OpenCounts>,
    /// To the ops listener.
    ops_connections: Arc<OpenCounts>,
    /// Over HTTP/2, where one connection has many.
    requests: Arc<OpenCounts>,
    metrics: Metrics,
    clock: Clock,
    logged: [Hourly; Refusal::ALL.len()],
    proxy_log: Hourly,
}

impl ClientLimits {
    pub(crate) fn new(settings: ClientSettings, metrics: Metrics, clock: Clock) -> Self {
        Self {
            settings,
            buckets: Buckets::default(),
            connections: OpenCounts::new(MAX_CONNECTIONS_PER_CLIENT),
            ops_connections: OpenCounts::new(MAX_OPS_CONNECTIONS_PER_PEER),
            requests: OpenCounts::new(MAX_REQUESTS_IN_FLIGHT_PER_CLIENT),
            metrics,
            clock,
            logged: Default::default(),
            proxy_log: Hourly::default(),
        }
    }

    /// Counts a request, unless its client has too many in flight.
    pub(crate) fn count(&self, limit: ClientLimit, head: &Parts) -> Result<(), OverLimit> {
        if let Some(over_limit) = head.extensions.get::<OverLimit>() {
            return Err(over_limit.clone());
        }
        let Some(client) = self.client(head) else { return Ok(()) };
        let refusal = limit.refusal();
        self.buckets.take(client, limit, self.clock.now()).map_err(|wait| OverLimit { refusal, wait })
    }

    /// Counts a download that leads to a mail, because its opt-in has to be confirmed.
    pub(crate) fn count_opt_in(&self, service: &Service, order: &DownloadRequest, head: &Parts) -> Result<(), Problem> {
        if !(order.updates && service.confirm_updates) {
            return Ok(());
        }
        self.count(ClientLimit::OptIns, head).map_err(|over_limit| self.refuse(over_limit))
    }

    /// Records that a request is refused, and returns the response.
    pub(crate) fn refuse(&self, OverLimit { refusal, wait }: OverLimit) -> Problem {
        self.record(refusal);
        Problem::over_limit(wait)
    }

    /// Counts a connection of this peer until the slot is dropped. Returns `None` if it has too many.
    pub(crate) fn open_connection(&self, peer: Peer) -> Option<ClientSlot> {
        self.open(&self.connections, peer).or_else(|| self.record_none(Refusal::ConnectionsPerClient))
    }

    /// As [`Self::open_connection`], for the ops listener. Peers on other machines are limited in local networks, too, and with
    /// `client_limits = off`: anybody who reaches it could otherwise take all of its connections.
    pub(crate) fn open_ops_connection(&self, peer: Peer) -> Option<ClientSlot> {
        if peer.address().is_loopback() || self.is_trusted_proxy(peer) {
            return Some(ClientSlot::UNLIMITED);
        }
        let slot = self.ops_connections.open(Client::of(peer.address()));
        slot.or_else(|| self.record_none(Refusal::OpsConnections))
    }

    /// Counts a request of this peer over HTTP/2 until the slot is dropped. Fails if it has too many in flight.
    pub(crate) fn open_request(&self, peer: Peer) -> Result<ClientSlot, OverLimit> {
        let over_limit = OverLimit { refusal: Refusal::RequestsInFlight, wait: Duration::from_secs(1) };
        self.open(&self.requests, peer).ok_or(over_limit)
    }

    /// All connections are taken: idle ones of the clients that have most make room until the returned value is dropped.
    pub(crate) fn wait_for_place(&self) -> WaitForPlace {
        self.connections.wait_for_place()
    }

    /// An idle connection was closed to make room.
    pub(crate) fn record_made_room(&self) {
        self.record(Refusal::IdleConnections);
    }

    /// Whether the peer is a proxy or a colleague.
    pub(crate) fn is_near(&self, peer: Peer) -> bool {
        peer.is_local() || self.is_trusted_proxy(peer)
    }

    fn open(&self, counts: &Arc<OpenCounts>, peer: Peer) -> Option<ClientSlot> {
        if !self.settings.limits || self.is_near(peer) {
            return Some(ClientSlot::UNLIMITED);
        }
        counts.open(Client::of(peer.address()))
    }

    fn is_trusted_proxy(&self, peer: Peer) -> bool {
        self.settings.proxies.as_ref().is_some_and(|proxies| proxies.contains(peer.address()))
    }

    fn record_none<T>(&self, refusal: Refusal) -> Option<T> {
        self.record(refusal);
        None
    }

    /// Whether a request shows that it came through a proxy that no setting names: it has a header that proxies add,
    /// and comes from a public address, so that all clients of the proxy are limited as one.
    fn shows_unconfigured_proxy(&self, peer: Peer, headers: &HeaderMap) -> bool {
        let ClientSettings { proxies, limits } = &self.settings;
        *limits
            && proxies.is_none()
            && !peer.is_local()
            && forwarding_headers::FORWARDING_HEADERS.iter().any(|name| headers.contains_key(*name))
    }

    /// Logs, once an hour, that there is such a proxy.
    pub(crate) fn log_unconfigured_proxy(&self, peer: Peer, headers: &HeaderMap) {
        if self.shows_unconfigured_proxy(peer, headers) && self.proxy_log.is_due(self.clock.now()) {
            tracing::warn!(
                "a request from a public address has a header that proxies add; if there is a proxy, set \
                 `client_ip_header` and `trusted_proxies`, because the limits count all its clients as one"
            );
        }
    }

    /// Returns who sent the request; `None` if they are not limited.
    fn client(&self, head: &Parts) -> Option<Client> {
        let ClientSettings { proxies, limits } = &self.settings;
        let peer = *head.extensions.get::<Peer>().filter(|_| *limits)?;
        let proxies = proxies.as_ref().filter(|proxies| proxies.contains(peer.address()));
        let named = proxies.and_then(|proxies| forwarding_headers::named_client(proxies, &head.headers));
        named.or_else(|| Some(peer.address()).filter(|_| !peer.is_local())).map(Client::of)
    }

    /// Counts a refusal, and logs it once an hour.
    pub(crate) fn record(&self, refusal: Refusal) {
        self.metrics.record_refusal(refusal);
        if self.logged[refusal as usize].is_due(self.clock.now()) {
            let reason = refusal.as_str();
            tracing::warn!(reason, "{}. This is logged once an hour", refusal.explanation());
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;
    use crate::domain::limits;
    use crate::domain::network::{TrustedProxies, parse_networks};

    fn limits_with(proxies: Option<&str>, limits: bool) -> ClientLimits {
        let proxies = proxies
            .map(|networks| TrustedProxies::new("x-forwarded-for".to_owned(), parse_networks(networks).unwrap()));
        ClientLimits::new(ClientSettings { proxies, limits }, Metrics::new(), Clock::System)
    }

    fn head(peer: &str, forwarded_for: &[&str]) -> Parts {
        let mut request = Request::builder().extension(Peer::new(peer.parse().unwrap()));
        for line in forwarded_for {
            request = request.header("x-forwarded-for", *line);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn client(address: &str) -> Option<Client> {
        address.parse().ok().map(Client::of)
    }

    #[test]
    fn the_client_is_the_peer_unless_a_trusted_proxy_names_another() {
        let limits = limits_with(Some("10.0.0.0/8, 192.0.2.1"), true);
        for (peer, header, expected) in [
            ("203.0.113.7", &["198.51.100.1"][..], client("203.0.113.7")),
            ("10.0.0.1", &["198.51.100.1"], client("198.51.100.1")),
            ("::ffff:10.0.0.1", &["198.51.100.1"], client("198.51.100.1")),
            ("10.0.0.1", &["1.1.1.1", "198.51.100.1, 10.0.0.2"], client("198.51.100.1")),
            // A local address is limited if a trusted proxy names it.
            ("10.0.0.1", &["127.0.0.1"], client("127.0.0.1")),
            ("10.0.0.1", &["10.0.0.3, 10.0.0.2"], client("10.0.0.3")),
            // No usable header: the peer itself.
            ("10.0.0.1", &[], None),
            ("10.0.0.1", &["unknown"], None),
            ("192.0.2.1", &[], client("192.0.2.1")),
            ("192.0.2.1", &["198.51.100.1, unknown"], client("192.0.2.1")),
            // Local, and not a trusted proxy.
            ("127.0.0.1", &["198.51.100.1"], None),
            ("192.168.1.1", &[], None),
        ] {
            assert!(limits.client(&head(peer, header)) == expected, "{peer} {header:?}");
        }
        assert!(limits_with(None, true).client(&head("203.0.113.7", &["198.51.100.1"])) == client("203.0.113.7"));
        assert!(limits_with(None, false).client(&head("203.0.113.7", &[])).is_none());
    }

    #[test]
    fn connections_of_local_peers_and_proxies_are_not_limited() {
        let limits = limits_with(Some("192.0.2.0/24"), true);
        let open = |limits: &ClientLimits, peer: &str| {
            let peer = Peer::new(peer.parse().unwrap());
            let slots = (0..=limits::MAX_CONNECTIONS_PER_CLIENT).map(|_| limits.open_connection(peer));
            slots.collect::<Vec<_>>().iter().flatten().count()
        };
        for unlimited in ["127.0.0.1", "10.0.0.1", "fe80::1", "192.0.2.1"] {
            assert_eq!(open(&limits, unlimited), limits::MAX_CONNECTIONS_PER_CLIENT + 1, "{unlimited}");
        }
        assert_eq!(open(&limits, "203.0.113.7"), limits::MAX_CONNECTIONS_PER_CLIENT);
        assert_eq!(open(&limits_with(None, false), "203.0.113.7"), limits::MAX_CONNECTIONS_PER_CLIENT + 1);
    }

    #[test]
    fn a_proxy_that_no_setting_names_shows_by_its_header_from_a_public_address() {
        let shows = |limits: &ClientLimits, head: &Parts| {
            limits.shows_unconfigured_proxy(*head.extensions.get().unwrap(), &head.headers)
        };
        let unset = limits_with(None, true);
        assert!(shows(&unset, &head("203.0.113.7", &["198.51.100.1"])));
        assert!(!shows(&unset, &head("203.0.113.7", &[])));
        assert!(!shows(&unset, &head("10.0.0.1", &["198.51.100.1"])));
        assert!(!shows(&limits_with(None, false), &head("203.0.113.7", &["198.51.100.1"])));
        assert!(!shows(&limits_with(Some("10.0.0.0/8"), true), &head("203.0.113.7", &["198.51.100.1"])));
    }
}
