//! Images, style sheets, scripts and fonts. Their paths contain a hash of their content, so browsers
//! may cache them forever.

use std::collections::BTreeMap;

use super::content::{Content, SiteFailure};
use crate::domain::sha256::Sha256;

#[derive(Clone, Debug)]
pub struct Asset {
    /// The URL path that it is served at.
    pub path: String,
    pub media_type: &'static str,
    pub bytes: Vec<u8>,
    /// For the attribute `integrity` of a script.
    pub integrity: String,
}

/// All assets by their file name, such as `style.css`.
#[derive(Clone, Debug, Default)]
pub struct Assets(BTreeMap<String, Asset>);

impl Assets {
    /// Style sheets and scripts are read last, because they refer to other assets as `asset:NAME`.
    pub(super) fn read(content: &Content) -> Result<Self, SiteFailure> {
        let mut assets = Self::default();
        let (referring, others): (Vec<_>, Vec<_>) = content
            .names("assets/")
            .into_iter()
            .map(|file| file.trim_start_matches("assets/").to_owned())
            .partition(|name| matches!(extension(name), "css" | "js"));
        for name in others {
            let bytes = content.bytes(&format!("assets/{name}"))?.into_owned();
            assets.0.insert(name.clone(), Asset::new(&name, bytes));
        }
        for name in referring {
            let file = format!("assets/{name}");
            let text = assets.resolve(&file, &content.text(&file)?)?;
            assets.0.insert(name.clone(), Asset::new(&name, text.into_bytes()));
        }
        Ok(assets)
    }

    pub fn get(&self, name: &str) -> Option<&Asset> {
        self.0.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Asset> {
        self.0.values()
    }

    /// Replaces each `asset:NAME` by the path of that asset.
    fn resolve(&self, file: &str, text: &str) -> Result<String, SiteFailure> {
        let mut parts = text.split("asset:");
        let mut resolved = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c)).unwrap_or(part.len());
            let (name, rest) = part.split_at(end);
            let line = resolved.matches('\n').count() + 1;
            let asset =
                self.get(name).ok_or_else(|| SiteFailure::fault(file, line, format!("there is no asset {name}")))?;
            resolved.push_str(&asset.path);
            resolved.push_str(rest);
        }
        Ok(resolved)
    }
}

impl Asset {
    fn new(name: &str, bytes: Vec<u8>) -> Self {
        let hash = Sha256::of(&bytes);
        let extension = extension(name);
        let stem = name.strip_suffix(extension).unwrap_or(name);
        Self {
            path: format!("/assets/{stem}{}.{extension}", hash.short(12)),
            media_type: media_type(extension),
            integrity: format!("sha256-{}", hash.base64()),
            bytes,
        }
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
        let css = assets.resolve("assets/style.css", "a { src: url(\"asset:serif.woff2\") }").unwrap();
        assert_eq!(css, format!("a {{ src: url(\"{path}\") }}"));
        assert!(path.starts_with("/assets/serif."), "{path}");

        let fault = assets.resolve("assets/style.css", "\n\nurl(asset:none.png)").unwrap_err();
        assert_eq!(fault, SiteFailure::fault("assets/style.css", 3, "there is no asset none.png"));
    }
}
