//! Pictures, style, script and font, under names that change with their content, so that browsers
//! may keep them for good.

use std::collections::BTreeMap;

use super::{Content, SiteFailure};
use crate::domain::sha256::Sha256;

#[derive(Clone, Debug)]
pub struct Asset {
    /// Where it is served.
    pub path: String,
    pub media_type: &'static str,
    pub bytes: Vec<u8>,
    integrity: String,
}

/// All of them by the name they have in the folder, such as `style.css`.
#[derive(Clone, Debug, Default)]
pub struct Assets(BTreeMap<String, Asset>);

impl Assets {
    /// What refers to others by `asset:NAME` comes last and is given their addresses.
    pub(super) fn read(content: &Content) -> Result<Self, SiteFailure> {
        let mut assets = Self::default();
        let (texts, others): (Vec<_>, Vec<_>) = content
            .names("assets/")
            .into_iter()
            .map(|file| file.trim_start_matches("assets/").to_owned())
            .partition(|name| matches!(extension(name), "css" | "js"));
        for name in others {
            let bytes = content.bytes(&format!("assets/{name}"))?.into_owned();
            assets.0.insert(name.clone(), Asset::new(&name, bytes));
        }
        for name in texts {
            let file = format!("assets/{name}");
            let text = assets.refer(&file, &content.text(&file)?)?;
            assets.0.insert(name.clone(), Asset::new(&name, text.into_bytes()));
        }
        Ok(assets)
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Asset> {
        self.0.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Asset> {
        self.0.values()
    }

    fn refer(&self, file: &str, text: &str) -> Result<String, SiteFailure> {
        let mut pieces = text.split("asset:");
        let mut referred = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let end = piece.find(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c)).unwrap_or(piece.len());
            let line = referred.matches('\n').count() + 1;
            let asset = self
                .get(&piece[..end])
                .ok_or_else(|| SiteFailure::fault(file, line, format!("there is no asset {}", &piece[..end])))?;
            referred.push_str(&asset.path);
            referred.push_str(&piece[end..]);
        }
        Ok(referred)
    }
}

impl Asset {
    fn new(name: &str, bytes: Vec<u8>) -> Self {
        let digest = Sha256::of(&bytes);
        let extension = extension(name);
        let stem = name.strip_suffix(extension).unwrap_or(name);
        Self {
            path: format!("/assets/{stem}{}.{extension}", digest.short(12)),
            media_type: media_type(extension),
            integrity: format!("sha256-{}", digest.base64()),
            bytes,
        }
    }

    #[must_use]
    pub fn integrity(&self) -> &str {
        &self.integrity
    }
}

fn extension(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(_, extension)| extension)
}

fn media_type(extension: &str) -> &'static str {
    match extension {
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "txt" => "text/plain; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "avif" => "image/avif",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assets_refer_to_one_another_by_name() {
        let mut assets = Assets::default();
        assets.0.insert("serif.woff2".to_owned(), Asset::new("serif.woff2", b"font".to_vec()));
        let path = &assets.get("serif.woff2").unwrap().path;
        let css = assets.refer("assets/style.css", "a { src: url(\"asset:serif.woff2\") }").unwrap();
        assert_eq!(css, format!("a {{ src: url(\"{path}\") }}"));
        assert!(path.starts_with("/assets/serif."), "{path}");

        let fault = assets.refer("assets/style.css", "\n\nurl(asset:none.png)").unwrap_err();
        assert_eq!(fault, SiteFailure::fault("assets/style.css", 3, "there is no asset none.png"));
    }
}
