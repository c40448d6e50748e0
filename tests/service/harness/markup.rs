//! Finds things in HTML and Markdown as this site writes them; not a general parser.

use fancy_regex::Regex;

/// The values of one attribute, on all elements or on those of one name.
pub fn attributes(html: &str, element: &str, attribute: &str) -> Vec<String> {
    let element = if element == "*" { "[a-z0-9]+" } else { element };
    groups(html, &format!(r#"<{element}(?=\s)[^>]*?\s{attribute}="([^"]*)""#))
        .into_iter()
        .map(|value| value.replace("&amp;", "&"))
        .collect()
}

/// The contents of all elements of one name.
pub fn texts(html: &str, element: &str) -> Vec<String> {
    groups(html, &format!(r"(?s)<{element}\b[^>]*>(.*?)</{element}>"))
}

/// The targets of the links of a Markdown text, without those in code.
pub fn markdown_links(text: &str) -> Vec<String> {
    groups(&without_code(text), r"\]\(([^)\s]+)\)")
}

/// Every URL in a text, linked or not, without the punctuation of its sentence.
pub fn addresses(text: &str) -> Vec<String> {
    groups(text, r#"(https?://[^\s"'<>()`,|]+)"#)
        .into_iter()
        .map(|address| address.trim_end_matches(['.', ':', ';']).to_owned())
        .collect()
}

/// The contents of the code blocks in one language.
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
