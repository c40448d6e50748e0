//! Why the service refuses a request or a connection that it would otherwise accept.

/// The reasons, a fixed set: they are labels of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Refusal {
    Signups,
    Messages,
    UnknownTokens,
    McpRequests,
    ConnectionsPerClient,
}

impl Refusal {
    pub(crate) const ALL: [Self; 5] =
        [Self::Signups, Self::Messages, Self::UnknownTokens, Self::McpRequests, Self::ConnectionsPerClient];

    /// The value of the label `reason`.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Signups => "signups",
            Self::Messages => "messages",
            Self::UnknownTokens => "unknown_tokens",
            Self::McpRequests => "mcp_requests",
            Self::ConnectionsPerClient => "connections_per_client",
        }
    }

    /// The name on the dashboard.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Signups => "Downloads and joins",
            Self::Messages => "Messages",
            Self::UnknownTokens => "Unsubscribes with an unknown token",
            Self::McpRequests => "MCP requests",
            Self::ConnectionsPerClient => "Connections",
        }
    }
}
