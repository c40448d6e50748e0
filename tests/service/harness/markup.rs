//! Finds things in HTML and Markdown as the site writes them; no parser for anybody else's.

use fancy_regex::Regex;

/// The values of one attribute, on all elements or on those of one name.
pub fn attributes(html: &str, element: &str, attribute: &str) -> Vec<String> {
    let element = if element == "*" { "[a-z0-9]+" } else { element };
    groups(html, &format!(r#"<{element}(?=\s)[^>]*?\s{attribute}="([^"]*)""#))
        .into_iter()
        .map(|value| value.replace("&amp;", "&"))
        .collect()
}

/// What stands between the tags of all elements of one name.
pub fn texts(html: &str, element: &str) -> Vec<String> {
    groups(html, &format!(r"(?s)<{element}\b[^>]*>(.*?)</{element}>"))
}

/// Where the links of a Markdown text lead, code left out.
pub fn markdown_links(text: &str) -> Vec<String> {
    groups(&without_code(text), r"\]\(([^)\s]+)\)")
}

/// Every address with a scheme in a text, linked or not, whatever sentence it stands in.
pub fn addresses(text: &str) -> Vec<String> {
    groups(text, r#"(https?://[^\s"'<>()`,|]+)"#)
        .into_iter()
        .map(|address| address.trim_end_matches(['.', ':', ';']).to_owned())
        .collect()
}

/// The blocks of code in one language, as they stand.
pub fn code_blocks(text: &str, language: &str) -> Vec<String> {
    groups(text, &format!(r"(?ms)^```{language}\n(.*?)^```"))
}

fn without_code(text: &str) -> String {
    Regex::new(r"(?ms)^ *```.*?^ *```").expect("a pattern").replace_all(text, "").into_owned()
}

/// The first group of every match.
fn groups(text: &str, pattern: &str) -> Vec<String> {
    Regex::new(pattern)
        .expect("a pattern")
        .captures_iter(text)
        .map(|found| found.expect("a match")[1].to_owned())
        .collect()
}
