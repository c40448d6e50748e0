//! Builds the site in memory: Markdown, facts and templates become finished pages.
//!
//! Knows no HTTP. What pages say about the interface (endpoints, tools, errors, limits) is passed in.

mod anchor;
mod assets;
mod build;
mod confirmation_template;
mod content;
mod facts;
mod failure;
mod form;
mod json_ld;
mod letter_template;
mod markdown;
mod nested_markdown;
mod page;
mod page_source;
mod policies;
mod starter;
mod templates;

pub use assets::{Asset, Assets};
pub use build::{Site, Skill};
pub use confirmation_template::{ConfirmationRequest, ConfirmationTemplate, RenderedConfirmation};
pub use content::Content;
pub use facts::{AppleSignature, SiteFacts};
pub use failure::SiteFailure;
pub use form::{Form, FormErrors, FormValues};
pub use letter_template::{LetterRecipient, LetterTemplate, RenderedLetter};
pub use markdown::markdown_to_html;
pub use nested_markdown::nest_markdown;
pub use page::{Page, PageName};
pub use policies::Policies;
pub use starter::{AppName, StarterFailure, starter_texts, write_starter};
