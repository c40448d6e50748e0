//! Classes of MCP clients, for metrics.

/// A class of clients, recognized by the name or `User-Agent` that a client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientClass {
    Claude,
    OpenAi,
    Gemini,
    Cursor,
    VsCode,
    Inspector,
    Library,
    Browser,
    Other,
    Unnamed,
}

/// Substrings of client names. The first match decides, so specific names come before `mozilla`.
const PATTERNS: [(&str, ClientClass); 20] = [
    ("claude", ClientClass::Claude),
    ("anthropic", ClientClass::Claude),
    ("openai", ClientClass::OpenAi),
    ("chatgpt", ClientClass::OpenAi),
    ("codex", ClientClass::OpenAi),
    ("gemini", ClientClass::Gemini),
    ("google", ClientClass::Gemini),
    ("cursor", ClientClass::Cursor),
    ("visual studio code", ClientClass::VsCode),
    ("vscode", ClientClass::VsCode),
    ("copilot", ClientClass::VsCode),
    ("inspector", ClientClass::Inspector),
    ("mozilla", ClientClass::Browser),
    ("python", ClientClass::Library),
    ("node", ClientClass::Library),
    ("undici", ClientClass::Library),
    ("rmcp", ClientClass::Library),
    ("curl", ClientClass::Library),
    ("go-http-client", ClientClass::Library),
    ("fastmcp", ClientClass::Library),
];

impl ClientClass {
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
            Self::VsCode => "vscode",
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
            ("claude-code/2.1.0 (cli)", ClientClass::Claude),
            ("openai-mcp/1.0.0", ClientClass::OpenAi),
            ("Cursor/1.7 (darwin arm64)", ClientClass::Cursor),
            ("Visual Studio Code/1.104", ClientClass::VsCode),
            ("python-httpx/0.28.1", ClientClass::Library),
            ("node", ClientClass::Library),
            ("Mozilla/5.0 (Macintosh) Safari/605", ClientClass::Browser),
            ("secret@example.com", ClientClass::Other),
        ] {
            assert_eq!(ClientClass::classify(Some(name)), client, "{name}");
        }
        assert_eq!(ClientClass::classify(None), ClientClass::Unnamed);
        assert_eq!(ClientClass::classify(Some("")), ClientClass::Unnamed);
    }
}
