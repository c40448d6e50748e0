//! Markdown. Knows no page and no template.

mod document;
mod nested;
mod syntax;

pub(super) use document::Document;
pub use nested::nest_markdown;
pub use syntax::markdown_to_html;
