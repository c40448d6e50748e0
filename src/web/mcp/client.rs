//! Classes of MCP clients, for metrics.

/// A class of clients, recognised by the name or `User-Agent` that they send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    Claude,
    OpenAi,
    Gemini,
    Cursor,
    Code,
    Inspector,
    Library,
    Browser,
    Other,
    Unnamed,
}

/// Substrings of client names. The first match decides, so specific names come before `mozilla`.
const PATTERNS: [(&str, Client); 20] = [
    ("claude", Client::Claude),
    ("anthropic", Client::Claude),
    ("openai", Client::OpenAi),
    ("chatgpt", Client::OpenAi),
    ("codex", Client::OpenAi),
    ("gemini", Client::Gemini),
    ("google", Client::Gemini),
    ("cursor", Client::Cursor),
    ("visual studio code", Client::Code),
    ("vscode", Client::Code),
    ("copilot", Client::Code),
    ("inspector", Client::Inspector),
    ("mozilla", Client::Browser),
    ("python", Client::Library),
    ("node", Client::Library),
    ("undici", Client::Library),
    ("rmcp", Client::Library),
    ("curl", Client::Library),
    ("go-http-client", Client::Library),
    ("fastmcp", Client::Library),
];

impl Client {
    pub(crate) fn classify(name: Option<&str>) -> Self {
        let Some(name) = name.filter(|name| !name.is_empty()) else { return Self::Unnamed };
        let name = name.to_ascii_lowercase();
        PATTERNS.iter().find(|(pattern, _)| name.contains(pattern)).map_or(Self::Other, |(_, client)| *client)
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::OpenAi => "openai",
            Self::Gemini => "gemini",
            Self::Cursor => "cursor",
            Self::Code => "vscode",
            Self::Inspector => "inspector",
            Self::Library => "library",
            Self::Browser => "browser",
            Self::Other => "other",
            Self::Unnamed => "unnamed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_classified_by_name_and_unknown_ones_are_other() {
        for (name, client) in [
            ("claude-code/2.1.0 (cli)", Client::Claude),
            ("openai-mcp/1.0.0", Client::OpenAi),
            ("Cursor/1.7 (darwin arm64)", Client::Cursor),
            ("Visual Studio Code/1.104", Client::Code),
            ("python-httpx/0.28.1", Client::Library),
            ("node", Client::Library),
            ("Mozilla/5.0 (Macintosh) Safari/605", Client::Browser),
            ("secret@example.com", Client::Other),
        ] {
            assert_eq!(Client::classify(Some(name)), client, "{name}");
        }
        assert_eq!(Client::classify(None), Client::Unnamed);
        assert_eq!(Client::classify(Some("")), Client::Unnamed);
    }
}
