//! The site in memory: Markdown and facts in, finished pages out. Floor 1.
//!
//! Knows nothing of HTTP. Whatever pages say of the interface (errors, limits, endpoints, tools) is
//! handed in by those who know it.

mod assets;
mod build;
mod content;
mod facts;
mod failure;
mod form;
mod json_ld;
mod letter_template;
mod markdown;
mod page;
mod sample_image;
mod templates;

pub use assets::{Asset, Assets};
pub use build::{Site, Skill};
pub use content::Content;
pub use facts::SiteFacts;
pub use failure::SiteFailure;
pub use form::{Form, FormErrors, FormValues};
pub use letter_template::{LetterRecipient, LetterTemplate, RenderedLetter};
pub use markdown::markdown_to_html;
pub use page::{Page, PageName};
pub use sample_image::sample_image;
