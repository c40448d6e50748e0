//! Markdown. Knows no page and no template.

mod archived;
mod document;
mod letter;
mod letter_text;
mod nested;
mod parse;

pub(super) use archived::{ArchivedMarkdown, text_as_markdown};
pub(super) use document::Document;
pub(super) use letter::RenderedLetter;
pub use nested::{nest_markdown, nested_to_html};
pub use parse::markdown_to_html;
