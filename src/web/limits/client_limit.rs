//! The limits on requests per client.

use crate::domain::limits;
use crate::domain::rate_limit::RateLimit;
use crate::web::refusal::Refusal;

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
        match self {
            Self::Signups => limits::CLIENT_SIGNUPS,
            Self::Messages => limits::CLIENT_MESSAGES,
            Self::UnknownTokens => limits::CLIENT_UNKNOWN_TOKENS,
            Self::McpRequests => limits::CLIENT_MCP_REQUESTS,
        }
    }

    /// What is counted, for the reference page.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Signups => "downloads and joins together",
            Self::Messages => "contact messages",
            Self::UnknownTokens => "unsubscribe and confirmation requests with an unknown token",
            Self::McpRequests => "other requests to `/mcp`",
        }
    }

    pub(super) const fn refusal(self) -> Refusal {
        match self {
            Self::Signups => Refusal::Signups,
            Self::Messages => Refusal::Messages,
            Self::UnknownTokens => Refusal::UnknownTokens,
            Self::McpRequests => Refusal::McpRequests,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_names_the_actual_limits() {
        let page = include_str!("../../../docs/proxies.md");
        for limit in ClientLimit::ALL {
            let (rate, burst) = (limit.rate().per_period(), limit.rate().burst);
            assert!(page.contains(&format!("| {rate} | {burst} |")), "{limit:?}");
        }
        assert!(page.contains(&format!("| connections | | {} |", limits::MAX_CONNECTIONS_PER_CLIENT)));
    }
}
