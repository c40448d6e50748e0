//! Why the service refuses a request or a connection that it would otherwise accept.

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
        match self {
            Self::Signups => "signups",
            Self::Messages => "messages",
            Self::UnknownTokens => "unknown_tokens",
            Self::McpRequests => "mcp_requests",
            Self::ConnectionsPerClient => "connections_per_client",
            Self::OpsConnections => "ops_connections",
            Self::RequestsInFlight => "requests_in_flight",
            Self::OpenImages => "open_images",
            Self::WriterOverload => "writer_overload",
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

    /// The name on the dashboard.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Signups => "Downloads and joins of one client",
            Self::Messages => "Messages of one client",
            Self::UnknownTokens => "Unknown tokens of one client",
            Self::McpRequests => "MCP requests of one client",
            Self::ConnectionsPerClient => "Connections of one client",
            Self::OpsConnections => "Connections of one peer to the ops listener",
            Self::RequestsInFlight => "Requests in flight of one client",
            Self::OpenImages => "Disk images of all clients",
            Self::WriterOverload => "Writes of all clients",
        }
    }
}
