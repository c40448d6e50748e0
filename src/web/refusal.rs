//! Why the service refuses a request or a connection that it would otherwise accept.

/// The reasons, a fixed set: they are labels of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Refusal {
    Signups,
    Messages,
    UnknownTokens,
    McpRequests,
    ConnectionsPerClient,
    /// Over HTTP/2.
    RequestsInFlight,
    /// As many images are being sent as files may be open for them.
    OpenImages,
    /// More writes are queued than can be stored in time.
    WriterOverload,
}

impl Refusal {
    pub(crate) const ALL: [Self; 8] = [
        Self::Signups,
        Self::Messages,
        Self::UnknownTokens,
        Self::McpRequests,
        Self::ConnectionsPerClient,
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
            Self::RequestsInFlight => "requests_in_flight",
            Self::OpenImages => "open_images",
            Self::WriterOverload => "writer_overload",
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
            Self::RequestsInFlight => "Requests in flight of one client",
            Self::OpenImages => "Disk images of all clients",
            Self::WriterOverload => "Writes of all clients",
        }
    }
}
