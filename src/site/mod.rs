//! Builds the site in memory: Markdown, facts and templates become finished pages.
//!
//! Knows no HTTP. What pages say about the interface (endpoints, tools, errors, limits) is passed in.

mod assets;
mod build;
mod built_in;
mod content;
mod facts;
mod filters;
mod json_ld;
mod language;
mod languages;
mod letters;
mod links;
mod look;
mod mail_templates;
mod markdown;
mod media_types;
mod navigation;
mod notes;
mod own_pages;
mod page;
mod price;
mod render;
mod starter;
mod templates;
mod values;

pub use assets::{Asset, Assets};
pub use build::{AfterForms, Site, SiteInput};
pub use built_in::{built_in_names, copy_built_in};
pub use content::{Content, SiteFailure};
pub use facts::{AppleSignature, Policies, SiteFacts};
pub use language::Language;
pub use letters::LetterPage;
pub use mail_templates::{CurrentMailTemplates, MailRecipient, MailTemplates, RenderedMail};
pub use markdown::{markdown_to_html, nest_markdown, nested_to_html};
pub use notes::SiteNote;
pub use page::{Form, FormErrors, FormValues, ListedPage, Page, PageAddress, PageName, Skill};
pub use starter::{AppName, SampleText, starter_languages, write_starter};
