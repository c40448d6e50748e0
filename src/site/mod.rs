//! Builds the site in memory: Markdown, facts and templates become finished pages.
//!
//! Knows no HTTP. What pages say about the interface (endpoints, tools, errors, limits) is passed in.

mod assets;
mod build;
mod built_in;
mod content;
mod facts;
mod look;
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
pub use built_in::{built_in_names, copy_built_in};
pub use content::{Content, SiteFailure, UnusedFile};
pub use facts::{AppleSignature, Policies, SiteFacts};
pub use mail_templates::{MailRecipient, MailTemplates, RenderedMail};
pub use markdown::{markdown_to_html, nest_markdown};
pub use page::{Form, FormErrors, FormValues, ListedPage, Page, PageAddress, PageName, Skill};
pub use starter::{AppName, starter_texts, write_starter};
