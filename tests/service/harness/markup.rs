//! Finds things in HTML and Markdown as this site writes them; not a general parser.

use fancy_regex::Regex;

/// The values of one attribute, on all elements or on those of one name.
pub fn attributes(html: &str, element: &str, attribute: &str) -> Vec<String> {
    let element = if element == "*" { "[a-z0-9]+" } else { element };
    groups(html, &format!(r#"<{element}(?=\s)[^>]*?\s{attribute}="([^"]*)""#))
        .into_iter()
        .map(|value| unescaped(&value))
        .collect()
}

/// The contents of all elements of one name.
pub fn texts(html: &str, element: &str) -> Vec<String> {
    groups(html, &format!(r"(?s)<{element}\b[^>]*>(.*?)</{element}>"))
}

/// The text of a page without what is not part of it: drawings, forms, examples of code, permalinks and navigation.
pub fn main_text(html: &str) -> String {
    let text = Regex::new(r"<[^>]*>").expect("a pattern").replace_all(&main_part(html), " ").into_owned();
    unescaped(&text)
}

/// The text that such HTML stands for.
pub fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&#x27;", "'")
        .replace("&#x2f;", "/")
        .replace("&amp;", "&")
}

/// The targets of the links in the text of a page.
pub fn main_links(html: &str) -> Vec<String> {
    attributes(&main_part(html), "a", "href")
}

fn main_part(html: &str) -> String {
    let (_, main) = html.split_once("<main").expect("the start of the text");
    let (main, _) = main.split_once("</main>").expect("the end of the text");
    let apart = [
        ("[a-z]+", r#"aria-hidden="true""#),
        ("[a-z]+", r#"role="img""#),
        ("(?:svg|figure|form|template|nav|details class=\"more\")", ""),
        ("div", r#"class="code"#),
        ("a", r#"class="anchor""#),
        ("p", r#"class="dated""#),
    ];
    apart.iter().fold(format!("<main{main}"), |text, (element, attribute)| without(&text, element, attribute))
}

/// Removes the elements of this name that have the attribute, with all they contain.
fn without(html: &str, element: &str, attribute: &str) -> String {
    let start = Regex::new(&format!(r"<({element})\b[^>]*{attribute}[^>]*>")).expect("a pattern");
    let mut rest = html.to_owned();
    while let Ok(Some(found)) = start.captures(rest.as_str()) {
        let tag = found.get(0).expect("the tag");
        let name = found.get(1).expect("the name").as_str().split(' ').next().expect("a name");
        let (from, to) = (tag.start(), end_of_element(&rest, tag.end(), name));
        rest.replace_range(from..to, " ");
    }
    rest
}

/// Where an element ends whose contents begin at `from`.
fn end_of_element(html: &str, from: usize, name: &str) -> usize {
    let tag = Regex::new(&format!(r"<(/?){name}\b[^>]*>")).expect("a pattern");
    let (mut depth, mut at) = (1, from);
    while depth > 0 {
        let found = tag.captures_from_pos(html, at).expect("a match").expect("the end of the element");
        depth = if found[1].is_empty() { depth + 1 } else { depth - 1 };
        at = found.get(0).expect("the tag").end();
    }
    at
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

pub fn without_code(text: &str) -> String {
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
