//! The site in memory: Markdown and facts in, finished pages out. Floor 1.
//!
//! Knows nothing of HTTP. Whatever pages say of the interface (errors, limits, endpoints, tools) is
//! handed in by those who know it.

mod build;
mod content;
mod facts;
mod failure;
mod markdown;
mod page;

pub use build::{Asset, Site, Skill};
pub use content::Content;
pub use facts::Facts;
pub use failure::SiteFailure;
pub use page::{Page, PageName};
