//! The files of the site.

use std::borrow::Cow;

use rust_embed::RustEmbed;

use super::SiteFailure;

#[derive(RustEmbed)]
#[folder = "content"]
struct Embedded;

/// Where the files come from: those built into the program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Content;

impl Content {
    /// # Errors
    /// When there is no such file.
    pub fn bytes(self, name: &str) -> Result<Cow<'static, [u8]>, SiteFailure> {
        Embedded::get(name).map(|file| file.data).ok_or_else(|| SiteFailure::Missing(name.to_owned()))
    }

    /// # Errors
    /// When there is no such file, or it is not UTF-8.
    pub fn text(self, name: &str) -> Result<String, SiteFailure> {
        String::from_utf8(self.bytes(name)?.into_owned()).map_err(|_| SiteFailure::fault(name, 1, "it is not UTF-8"))
    }
}
