//! Who reads the site, identified by `User-Agent`, for the daily counts.
//!
//! A program can send any name, so a count says who claimed to read. The names are those that the operators document:
//! - `OpenAI`: <https://platform.openai.com/docs/bots>
//! - Anthropic: <https://support.claude.com/en/articles/8896518>
//! - Google: <https://developers.google.com/crawling/docs/crawlers-fetchers/overview-google-crawlers>
//! - Microsoft: <https://www.bing.com/webmasters/help/which-crawlers-does-bing-use-8c184ec0>
//! - Apple: <https://support.apple.com/en-us/119829>
//! - Perplexity: <https://docs.perplexity.ai/guides/bots>
//! - Amazon: <https://developer.amazon.com/amazonbot>
//! - Meta: <https://developers.facebook.com/docs/sharing/webmasters/web-crawlers>
//! - Common Crawl: <https://commoncrawl.org/ccbot>
//! - Mistral: <https://docs.mistral.ai/robots>
//! - `DuckDuckGo`: <https://duckduckgo.com/duckduckgo-help-pages/results/duckassistbot>
//! - Yandex: <https://yandex.com/support/webmaster/en/robot-workings/user-agent>
//!
//! Names without such a page (command-line agents, editors, Bytespider) are those that the programs were seen to send.
//! Google-Extended and Applebot-Extended are names for robots.txt that no program sends.

use std::sync::LazyLock;

use crate::domain::parse::word_enum;

word_enum! {
    /// Programs that act for one person, crawlers that read for many, people, and all other programs. In the order
    /// of the columns of `stats` and of the dashboard.
    pub enum ReaderKind {
        Person = "person",
        Agent = "agent",
        Crawler = "crawler",
        Program = "program",
    }
}

/// The readers that are counted separately: name, kind, and the product names that they send, in lower case.
const READERS: [(&str, ReaderKind, &[&str]); 46] = [
    ("GPTBot", ReaderKind::Crawler, &["gptbot"]),
    ("OAI-SearchBot", ReaderKind::Crawler, &["oai-searchbot"]),
    ("ChatGPT-User", ReaderKind::Agent, &["chatgpt-user"]),
    ("OpenAI MCP", ReaderKind::Agent, &["openai-mcp"]),
    ("Codex", ReaderKind::Agent, &["codex", "codex_cli_rs", "codex-cli", "codex-mcp-client"]),
    ("ClaudeBot", ReaderKind::Crawler, &["claudebot"]),
    ("Claude-SearchBot", ReaderKind::Crawler, &["claude-searchbot"]),
    ("Claude-User", ReaderKind::Agent, &["claude-user"]),
    ("Claude Code", ReaderKind::Agent, &["claude-code", "claude-cli"]),
    ("Claude", ReaderKind::Agent, &["claude", "claude-ai", "claude-desktop", "anthropic", "anthropic-mcp"]),
    ("Googlebot", ReaderKind::Crawler, &["googlebot", "googlebot-image", "googlebot-news", "googlebot-video"]),
    ("GoogleOther", ReaderKind::Crawler, &["googleother", "googleother-image", "googleother-video"]),
    ("Google-CloudVertexBot", ReaderKind::Crawler, &["google-cloudvertexbot"]),
    ("Google-NotebookLM", ReaderKind::Agent, &["google-notebooklm"]),
    ("Gemini-Deep-Research", ReaderKind::Agent, &["gemini-deep-research"]),
    ("Gemini CLI", ReaderKind::Agent, &["gemini-cli", "geminicli", "gemini-cli-mcp-client", "gemini"]),
    ("Bingbot", ReaderKind::Crawler, &["bingbot"]),
    ("GitHub Copilot", ReaderKind::Agent, &["copilot", "githubcopilotchat", "github-copilot"]),
    ("Visual Studio Code", ReaderKind::Agent, &["visual-studio-code", "vscode", "code-oss"]),
    ("Applebot", ReaderKind::Crawler, &["applebot"]),
    ("PerplexityBot", ReaderKind::Crawler, &["perplexitybot"]),
    ("Perplexity-User", ReaderKind::Agent, &["perplexity-user"]),
    ("Amazonbot", ReaderKind::Crawler, &["amazonbot", "amzn-searchbot"]),
    ("Amzn-User", ReaderKind::Agent, &["amzn-user"]),
    ("Meta-ExternalAgent", ReaderKind::Crawler, &["meta-externalagent"]),
    ("Meta-ExternalFetcher", ReaderKind::Agent, &["meta-externalfetcher"]),
    ("facebookexternalhit", ReaderKind::Crawler, &["facebookexternalhit"]),
    ("CCBot", ReaderKind::Crawler, &["ccbot"]),
    ("Bytespider", ReaderKind::Crawler, &["bytespider"]),
    ("MistralAI-User", ReaderKind::Agent, &["mistralai-user"]),
    ("DuckAssistBot", ReaderKind::Crawler, &["duckassistbot"]),
    ("DuckDuckBot", ReaderKind::Crawler, &["duckduckbot"]),
    ("YandexBot", ReaderKind::Crawler, &["yandexbot", "yandexadditionalbot"]),
    ("Baiduspider", ReaderKind::Crawler, &["baiduspider"]),
    ("PetalBot", ReaderKind::Crawler, &["petalbot"]),
    ("cohere-ai", ReaderKind::Crawler, &["cohere-ai"]),
    ("Diffbot", ReaderKind::Crawler, &["diffbot"]),
    ("YouBot", ReaderKind::Crawler, &["youbot"]),
    ("Cursor", ReaderKind::Agent, &["cursor", "cursor-vscode"]),
    ("Windsurf", ReaderKind::Agent, &["windsurf", "windsurf-client"]),
    ("Cline", ReaderKind::Agent, &["cline"]),
    ("opencode", ReaderKind::Agent, &["opencode"]),
    ("Goose", ReaderKind::Agent, &["goose"]),
    ("MCP Inspector", ReaderKind::Agent, &["mcp-inspector", "inspector-client"]),
    ("people", ReaderKind::Person, &[]),
    ("other programs", ReaderKind::Program, &[]),
];

/// One of the readers that are counted separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reader(usize);

/// The product names by their length, so that a word is compared with few of them.
static BY_LENGTH: LazyLock<Vec<Vec<(&'static str, Reader)>>> = LazyLock::new(|| {
    let mut by_length = Vec::new();
    for (index, (_, _, products)) in READERS.iter().enumerate() {
        for product in *products {
            by_length.resize(by_length.len().max(product.len() + 1), Vec::new());
            by_length[product.len()].push((*product, Reader(index)));
        }
    }
    by_length
});

impl Reader {
    pub const COUNT: usize = READERS.len();
    pub const PEOPLE: Self = Self(Self::COUNT - 2);
    pub const OTHER_PROGRAMS: Self = Self(Self::COUNT - 1);

    /// Identifies the reader by the value of `User-Agent`. Browsers do not ask for Markdown, so a program that does and calls
    /// itself one is another program.
    pub fn of_user_agent(user_agent: Option<&str>, asks_for_markdown: bool) -> Self {
        let user_agent = user_agent.unwrap_or_default();
        let mut is_browser = user_agent.starts_with("Mozilla/") && !asks_for_markdown;
        for word in words(user_agent) {
            if let Some(reader) = Self::of_product(word) {
                return reader;
            }
            is_browser &= !names_a_program(word);
        }
        if is_browser { Self::PEOPLE } else { Self::OTHER_PROGRAMS }
    }

    /// Identifies the reader by the name that an MCP client gives itself.
    pub fn of_client_name(name: Option<&str>) -> Self {
        let name = name.unwrap_or_default();
        let known = |name: &str| words(name).find_map(Self::of_product);
        known(name).or_else(|| known(&name.replace(' ', "-"))).unwrap_or(Self::OTHER_PROGRAMS)
    }

    /// The reader that is stored under this name. One that only a newer version knows is another program.
    pub fn of_stored_name(name: &str) -> Self {
        READERS.iter().position(|(stored, ..)| *stored == name).map_or(Self::OTHER_PROGRAMS, Self)
    }

    pub const fn name(self) -> &'static str {
        READERS[self.0].0
    }

    pub const fn kind(self) -> ReaderKind {
        READERS[self.0].1
    }

    pub const fn index(self) -> usize {
        self.0
    }

    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT).map(Self)
    }

    fn of_product(name: &[u8]) -> Option<Self> {
        let products = BY_LENGTH.get(name.len())?;
        products.iter().find(|(product, _)| product.as_bytes().eq_ignore_ascii_case(name)).map(|(_, reader)| *reader)
    }
}

/// The words of a text, as bytes: every page that is read goes through here.
fn words(text: &str) -> impl Iterator<Item = &[u8]> {
    text.as_bytes().split(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'-' | b'_'))
}

/// Whether a word of `User-Agent` says that it is not the one of a browser, such as `compatible` or `NewBot`.
fn names_a_program(word: &[u8]) -> bool {
    let ends_with = |end: &[u8]| word.len() >= end.len() && word[word.len() - end.len()..].eq_ignore_ascii_case(end);
    match word.last() {
        Some(b't' | b'T') => ends_with(b"bot"),
        Some(b'r' | b'R') => ends_with(b"spider") || ends_with(b"crawler"),
        Some(b'e') => word == b"compatible" || word == b"HeadlessChrome",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAFARI: &str = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) \
                          Version/26.0 Safari/605.1.15";

    #[test]
    fn readers_are_told_by_the_names_that_they_send() {
        for (user_agent, reader, kind) in [
            ("Mozilla/5.0 (compatible; ClaudeBot/1.0; +claudebot@anthropic.com)", "ClaudeBot", ReaderKind::Crawler),
            (
                "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.3)",
                "GPTBot",
                ReaderKind::Crawler,
            ),
            ("Mozilla/5.0 (compatible; Claude-User/1.0)", "Claude-User", ReaderKind::Agent),
            ("claude-code/2.1.0 (cli)", "Claude Code", ReaderKind::Agent),
            ("meta-externalagent/1.1 (+https://developers.facebook.com/)", "Meta-ExternalAgent", ReaderKind::Crawler),
            ("Cursor/1.7 (darwin arm64)", "Cursor", ReaderKind::Agent),
            (SAFARI, "people", ReaderKind::Person),
            ("Mozilla/5.0 (X11) HeadlessChrome/140.0 Safari/537.36", "other programs", ReaderKind::Program),
            ("Mozilla/5.0 (compatible; NewBot/1.0)", "other programs", ReaderKind::Program),
            ("curl/8.14.1", "other programs", ReaderKind::Program),
            ("secret@example.com", "other programs", ReaderKind::Program),
            ("", "other programs", ReaderKind::Program),
        ] {
            let told = Reader::of_user_agent(Some(user_agent), false);
            assert_eq!((told.name(), told.kind()), (reader, kind), "{user_agent}");
            assert_eq!(Reader::of_stored_name(reader), told);
        }
        assert_eq!(Reader::of_user_agent(None, false), Reader::OTHER_PROGRAMS);
        assert_eq!(Reader::of_user_agent(Some(SAFARI), true), Reader::OTHER_PROGRAMS);
        assert_eq!(Reader::of_user_agent(Some("GPTBot/1.3"), true).name(), "GPTBot");
        assert_eq!(Reader::of_stored_name("of a newer version"), Reader::OTHER_PROGRAMS);
    }

    #[test]
    fn mcp_clients_are_told_by_the_name_that_they_give() {
        for (name, reader) in [
            ("claude-ai", "Claude"),
            ("Visual Studio Code", "Visual Studio Code"),
            ("codex-mcp-client", "Codex"),
            ("my own client", "other programs"),
        ] {
            assert_eq!(Reader::of_client_name(Some(name)).name(), reader, "{name}");
        }
        assert_eq!(Reader::of_client_name(None), Reader::OTHER_PROGRAMS);
    }

    #[test]
    fn names_are_unique_and_found_whatever_their_case() {
        let mut products = Vec::new();
        for (name, _, sent) in READERS {
            assert_eq!(READERS.iter().filter(|(other, ..)| *other == name).count(), 1, "{name}");
            for product in sent {
                assert_eq!(*product, product.to_ascii_lowercase());
                assert_eq!(Reader::of_user_agent(Some(&format!("x {}/1", product.to_uppercase())), false).name(), name);
                products.push(*product);
            }
        }
        products.sort_unstable();
        let all = products.len();
        products.dedup();
        assert_eq!(products.len(), all, "a product name belongs to one reader");
        assert_eq!((Reader::PEOPLE.name(), Reader::OTHER_PROGRAMS.name()), ("people", "other programs"));
    }
}
