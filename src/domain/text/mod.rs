//! Texts: limits, display, and the front matter of Markdown files.

mod display;
mod front_matter;
mod limited;
mod nearest;

pub use display::{
    capitalised, excerpt, io_error_in_words, is_control_or_bidi, is_invisible, is_joiner, is_line_break, lines,
    plural_form, quantity, sanitize, sanitize_label, sanitize_line,
};
pub use front_matter::FrontMatter;
pub use limited::{InvalidMessage, MessageText, SenderName, Source, TWO_VISIBLE_CHARACTERS, TooLong, clean_text};
pub use nearest::{did_you_mean, line_at, name_nearest_field};
