//! The limits on requests per client, and why the service refuses a request or a connection that it would otherwise accept.

use crate::domain::limits;
use crate::domain::parse::word_enum;
use crate::domain::rate_limit::{Period, RateLimit};
use crate::site::Policies;

word_enum! {
    /// The reasons, a fixed set: they are the label `reason` of a metric.
    #[derive(Hash)]
    pub(crate) enum Refusal {
        Signups = "signups",
        /// Mails that ask to confirm an opt-in.
        OptIns = "opt_ins",
        Messages = "messages",
        /// Mails with a link to sign in to the desk.
        SignInMails = "sign_in_mails",
        DeskRequests = "desk_requests",
        UnknownTokens = "unknown_tokens",
        McpRequests = "mcp_requests",
        ConnectionsPerClient = "connections_per_client",
        /// To the ops listener.
        OpsConnections = "ops_connections",
        /// Over HTTP/2.
        RequestsInFlight = "requests_in_flight",
        /// Closed while all connections were in use, to make room.
        IdleConnections = "idle_connections",
        /// As many images are being sent as files may be open for them.
        OpenImages = "open_images",
        /// Requests to the desk whose token is unknown, revoked or expired.
        WrongTokens = "wrong_tokens",
        /// More writes are queued than can be stored in time.
        WriterOverload = "writer_overload",
    }
}

impl Refusal {
    /// The name on the dashboard.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Signups => "Downloads and joins of one client",
            Self::OptIns => "Opt-ins to confirm of one client",
            Self::Messages => "Messages of one client",
            Self::SignInMails => "Links to sign in for one client",
            Self::DeskRequests => "Requests to the desk of one client",
            Self::UnknownTokens => "Unknown tokens of one client",
            Self::McpRequests => "MCP requests of one client",
            Self::ConnectionsPerClient => "Connections of one client",
            Self::OpsConnections => "Connections of one peer to the ops listener",
            Self::RequestsInFlight => "Requests in flight of one client",
            Self::IdleConnections => "Idle connections closed to make room",
            Self::OpenImages => "Disk images of all clients",
            Self::WrongTokens => "Wrong tokens at the desk",
            Self::WriterOverload => "Writes of all clients",
        }
    }

    /// What happened and what can be done about it, for the log.
    pub(crate) const fn explanation(self) -> &'static str {
        match self {
            Self::OpsConnections => "a peer has as many connections to the ops listener as it may have",
            Self::IdleConnections => {
                "all connections are in use. Idle ones of the clients that have most are closed to make room. If these are \
                 visitors, raise the limit on open files of the process"
            }
            Self::OpenImages => {
                "as many disk images are being sent as files may be open for them. If these are visitors, raise the limit on \
                 open files of the process"
            }
            Self::WrongTokens => "a request to the desk had a token that is unknown, revoked or expired",
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
    /// Downloads with an opt-in that has to be confirmed: each causes a mail.
    OptIns,
    Messages,
    /// Unsubscribe and confirmation requests with an unknown token.
    UnknownTokens,
    /// Requests for a mail with a link to sign in to the desk.
    SignInMails,
    /// All requests to pages of the desk.
    DeskRequests,
    /// All requests to `/mcp` that are not [`Self::Signups`].
    McpRequests,
}

impl ClientLimit {
    /// Those of the public interface.
    pub(crate) const ALL: [Self; 5] =
        [Self::Signups, Self::OptIns, Self::Messages, Self::UnknownTokens, Self::McpRequests];

    /// Whether it exists with these settings.
    pub(crate) fn applies(self, policies: &Policies) -> bool {
        self != Self::OptIns || policies.confirm_updates
    }

    /// What one client may do. Each of these limits holds.
    pub(crate) fn rates(self) -> impl Iterator<Item = RateLimit> {
        // One half at once and the other in the course of a day: never more than the limit in 24 hours.
        let per_day = self.per_day().map(|count| RateLimit::new(count / 2, count / 2, Period::Day));
        std::iter::once(self.rate()).chain(per_day)
    }

    pub(crate) const fn rate(self) -> RateLimit {
        self.parts().0
    }

    pub(crate) const fn per_day(self) -> Option<u32> {
        match self {
            Self::Signups => Some(limits::CLIENT_SIGNUPS_PER_DAY),
            Self::Messages => Some(limits::CLIENT_MESSAGES_PER_DAY),
            Self::OptIns | Self::UnknownTokens | Self::McpRequests | Self::SignInMails | Self::DeskRequests => None,
        }
    }

    pub(crate) const fn refusal(self) -> Refusal {
        self.parts().1
    }

    /// What is counted, for the reference page.
    pub(crate) const fn title(self, policies: &Policies) -> &'static str {
        match self {
            Self::UnknownTokens if !policies.confirm_updates => "unsubscribe requests with an unknown token",
            _ => self.parts().2,
        }
    }

    const fn parts(self) -> (RateLimit, Refusal, &'static str) {
        match self {
            Self::Signups => (limits::CLIENT_SIGNUPS, Refusal::Signups, "downloads and joins together"),
            Self::OptIns => (
                limits::CLIENT_OPT_INS,
                Refusal::OptIns,
                "downloads with `updates: true`, each of which leads to an email",
            ),
            Self::Messages => (limits::CLIENT_MESSAGES, Refusal::Messages, "contact messages"),
            Self::UnknownTokens => (
                limits::CLIENT_UNKNOWN_TOKENS,
                Refusal::UnknownTokens,
                "unsubscribe and confirmation requests with an unknown token",
            ),
            Self::SignInMails => (limits::CLIENT_SIGN_IN_MAILS, Refusal::SignInMails, "mails with a link to sign in"),
            Self::DeskRequests => (limits::CLIENT_DESK_REQUESTS, Refusal::DeskRequests, "requests to the desk"),
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
            let per_day = limit.per_day().map(|count| format!("{count} ")).unwrap_or_default();
            assert!(page.contains(&format!("| {rate} | {burst} | {per_day}|")), "{limit:?}");
        }
        assert!(page.contains(&format!("| connections | | {} | |\n", limits::MAX_CONNECTIONS_PER_CLIENT)));
    }
}
