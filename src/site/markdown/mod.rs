//! Markdown. Knows no page and no template.

mod document;
mod nested;
mod parse;

pub(super) use document::Document;
pub use nested::nest_markdown;
pub use parse::markdown_to_html;
