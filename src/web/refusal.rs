//! The limits on requests per client, and why the service refuses a request or a connection that it would otherwise accept.

use crate::domain::limits;
use crate::domain::rate_limit::RateLimit;

/// The reasons, a fixed set: they are labels of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Refusal {
    Signups,
    Messages,
    UnknownTokens,
    McpRequests,
    ConnectionsPerClient,
    /// To the ops listener.
    OpsConnections,
    /// Over HTTP/2.
    RequestsInFlight,
    /// As many images are being sent as files may be open for them.
    OpenImages,
    /// More writes are queued than can be stored in time.
    WriterOverload,
}

impl Refusal {
    pub(crate) const ALL: [Self; 9] = [
        Self::Signups,
        Self::Messages,
        Self::UnknownTokens,
        Self::McpRequests,
        Self::ConnectionsPerClient,
        Self::OpsConnections,
        Self::RequestsInFlight,
        Self::OpenImages,
        Self::WriterOverload,
    ];

    /// The value of the label `reason`.
    pub(crate) const fn as_str(self) -> &'static str {
        self.names().0
    }

    /// The name on the dashboard.
    pub(crate) const fn title(self) -> &'static str {
        self.names().1
    }

    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Signups => ("signups", "Downloads and joins of one client"),
            Self::Messages => ("messages", "Messages of one client"),
            Self::UnknownTokens => ("unknown_tokens", "Unknown tokens of one client"),
            Self::McpRequests => ("mcp_requests", "MCP requests of one client"),
            Self::ConnectionsPerClient => ("connections_per_client", "Connections of one client"),
            Self::OpsConnections => ("ops_connections", "Connections of one peer to the ops listener"),
            Self::RequestsInFlight => ("requests_in_flight", "Requests in flight of one client"),
            Self::OpenImages => ("open_images", "Disk images of all clients"),
            Self::WriterOverload => ("writer_overload", "Writes of all clients"),
        }
    }

    /// What happened and what can be done about it, for the log.
    pub(crate) const fn explanation(self) -> &'static str {
        match self {
            Self::OpsConnections => "a peer has as many connections to the ops listener as it may have",
            Self::OpenImages => {
                "as many disk images are being sent as files may be open for them. If these are visitors, raise the limit on \
                 open files of the process"
            }
            Self::WriterOverload => "more writes are queued than can be stored in time",
            _ => {
                "a client exceeded a limit. If a proxy forwards the requests of many clients, set `client_ip_header` and \
                 `trusted_proxies`"
            }
        }
    }
}

/// What a client may do only so often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ClientLimit {
    /// Downloads and joins, from the API, the form and MCP.
    Signups,
    Messages,
    /// Unsubscribe and confirmation requests with an unknown token.
    UnknownTokens,
    /// All requests to `/mcp` that are not [`Self::Signups`].
    McpRequests,
}

impl ClientLimit {
    pub(crate) const ALL: [Self; 4] = [Self::Signups, Self::Messages, Self::UnknownTokens, Self::McpRequests];

    pub(crate) const fn rate(self) -> RateLimit {
        self.parts().0
    }

    pub(crate) const fn refusal(self) -> Refusal {
        self.parts().1
    }

    /// What is counted, for the reference page.
    pub(crate) const fn title(self) -> &'static str {
        self.parts().2
    }

    const fn parts(self) -> (RateLimit, Refusal, &'static str) {
        match self {
            Self::Signups => (limits::CLIENT_SIGNUPS, Refusal::Signups, "downloads and joins together"),
            Self::Messages => (limits::CLIENT_MESSAGES, Refusal::Messages, "contact messages"),
            Self::UnknownTokens => (
                limits::CLIENT_UNKNOWN_TOKENS,
                Refusal::UnknownTokens,
                "unsubscribe and confirmation requests with an unknown token",
            ),
            Self::McpRequests => (limits::CLIENT_MCP_REQUESTS, Refusal::McpRequests, "other requests to `/mcp`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_names_the_actual_limits() {
        let page = include_str!("../../docs/proxies.md");
        for limit in ClientLimit::ALL {
            let (rate, burst) = (limit.rate().per_period(), limit.rate().burst);
            assert!(page.contains(&format!("| {rate} | {burst} |")), "{limit:?}");
        }
        assert!(page.contains(&format!("| connections | | {} |", limits::MAX_CONNECTIONS_PER_CLIENT)));
    }
}
