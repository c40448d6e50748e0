//! Builds the site in memory: Markdown, facts and templates become finished pages.
//!
//! Knows no HTTP. What pages say about the interface (endpoints, tools, errors, limits) is passed in.

mod assets;
mod build;
mod content;
mod facts;
mod mail_templates;
mod markdown;
mod media_types;
mod navigation;
mod own_pages;
mod page;
mod starter;
mod templates;

pub use assets::{Asset, Assets};
pub use build::Site;
pub use content::{Content, SiteFailure, UnusedFile, built_in, built_in_names};
pub use facts::{AppleSignature, Policies, SiteFacts};
pub use mail_templates::{MailRecipient, MailTemplates, RenderedMail};
pub use markdown::{markdown_to_html, nest_markdown};
pub use page::{Form, FormErrors, FormValues, ListedPage, Page, PageAddress, PageName, Skill};
pub use starter::{AppName, starter_texts, write_starter};
