//! Images, style sheets, scripts, fonts, films and whatever else is in `assets/`. Each has two paths: one with a hash of its
//! content, so that browsers may cache it forever, and a stable one for addresses that people write down.

use std::collections::BTreeMap;

use bytes::Bytes;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::built_in::{built_in, built_in_names};
use super::content::{Content, FileState, SiteFailure};
use super::media_types::media_type;
use super::notes::SiteNote;
use crate::domain::sha256::Sha256;
use crate::domain::text::did_you_mean;

const FOLDER: &str = "assets/";
const MAX_MEBIBYTES: u64 = 100;

/// What browsers encode in a path (the URL standard), so that the path of a file is what they ask for.
const ENCODED_IN_PATHS: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

#[derive(Clone, Debug)]
pub struct Asset {
    /// The URL path with the hash of the content.
    pub path: String,
    /// The URL path that stays the same when the content changes.
    pub stable_path: String,
    pub media_type: &'static str,
    pub bytes: Bytes,
    pub hash: Sha256,
    source: Source,
}

/// Where an asset is from. The same one has the same content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    BuiltIn,
    Own(FileState),
}

impl Source {
    fn bytes(self, content: &Content, file: &str) -> Result<Bytes, SiteFailure> {
        match self {
            Self::BuiltIn => built_in(file).ok_or_else(|| SiteFailure::Missing(file.to_owned())),
            Self::Own(_) => content.bytes(file),
        }
    }
}

/// How templates refer to an asset.
#[derive(Clone, Debug)]
pub(super) struct AssetLink {
    pub path: String,
    /// For the attribute `integrity` of a script or style sheet.
    pub integrity: String,
}

/// All assets by their names below `assets/`, such as `style.css`.
#[derive(Clone, Debug, Default)]
pub struct Assets {
    by_name: BTreeMap<String, Asset>,
    unused: Vec<SiteNote>,
}

impl Assets {
    /// Style sheets and scripts are read last, because they refer to other assets as `asset:NAME`. What did not change
    /// is taken from `before`: it need neither be read again nor held in memory twice. The part `after_style` is added to the style sheet.
    pub(super) fn read(content: &Content, before: Option<&Self>, after_style: &str) -> Result<Self, SiteFailure> {
        let mut assets = Self::default();
        let mut files = BTreeMap::new();
        for file in content.own_names(FOLDER) {
            match content.check_own(&file, MAX_MEBIBYTES) {
                Ok(state) => drop(files.insert(file, Source::Own(state))),
                Err(why) => assets.unused.push(SiteNote::unused(file, why)),
            }
        }
        for file in built_in_names().filter(|file| file.starts_with(FOLDER)) {
            files.entry(file).or_insert(Source::BuiltIn);
        }
        let refers = |file: &str| matches!(extension(file), "css" | "js");
        let (referring, others): (Vec<_>, Vec<_>) = files.into_iter().partition(|(file, _)| refers(file));
        for (file, source) in others {
            let name = file.strip_prefix(FOLDER).unwrap_or(&file);
            let unchanged = before.and_then(|before| before.get(name)).filter(|before| before.source == source);
            let asset = match unchanged {
                Some(asset) => asset.clone(),
                None => Asset { source, ..Asset::new(name, source.bytes(content, &file)?) },
            };
            assets.by_name.insert(name.to_owned(), asset);
        }
        for (file, source) in referring {
            let bytes = source.bytes(content, &file)?;
            let text = String::from_utf8(bytes.into()).map_err(|_| SiteFailure::fault(&file, 1, "it is not UTF-8"))?;
            let mut text = assets.resolve(&file, &text)?;
            if file == "assets/style.css" {
                text.push_str(after_style);
            }
            let name = file.strip_prefix(FOLDER).unwrap_or(&file);
            assets.by_name.insert(name.to_owned(), Asset { source, ..Asset::new(name, text.into()) });
        }
        Ok(assets)
    }

    pub fn get(&self, name: &str) -> Option<&Asset> {
        self.by_name.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Asset> {
        self.by_name.values()
    }

    /// Files in `assets/` that are none.
    pub(super) fn unused(&self) -> &[SiteNote] {
        &self.unused
    }

    pub(super) fn link(&self, name: &str) -> Result<AssetLink, String> {
        let asset = self.find(name)?;
        Ok(AssetLink { path: asset.path.clone(), integrity: format!("sha256-{}", asset.hash.base64()) })
    }

    /// The asset, or why there is none.
    fn find(&self, name: &str) -> Result<&Asset, String> {
        self.get(name).ok_or_else(|| {
            let file = format!("{FOLDER}{name}");
            if let Some(why) = self.unused.iter().find_map(|unused| unused.why_unused(&file)) {
                return format!("{file} cannot be used: {why}");
            }
            let meant = did_you_mean(name, self.by_name.keys().map(String::as_str));
            format!("there is no asset {name}.{meant}")
        })
    }

    /// Replaces each `asset:NAME` by the path of that asset.
    fn resolve(&self, file: &str, text: &str) -> Result<String, SiteFailure> {
        let mut parts = text.split("asset:");
        let mut resolved = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|c: char| !c.is_ascii_alphanumeric() && !"._-/".contains(c)).unwrap_or(part.len());
            let (name, rest) = part.split_at(end);
            let line = resolved.matches('\n').count() + 1;
            let asset = self.find(name).map_err(|why| SiteFailure::fault(file, line, why))?;
            resolved.push_str(&asset.path);
            resolved.push_str(rest);
        }
        Ok(resolved)
    }
}

impl Asset {
    fn new(name: &str, bytes: Bytes) -> Self {
        let hash = Sha256::of(&bytes);
        let extension = extension(name);
        let hashed = match name.strip_suffix(extension) {
            Some(stem) if !extension.is_empty() => format!("{stem}{}.{extension}", hash.short(12)),
            _ => format!("{name}.{}", hash.short(12)),
        };
        Self {
            path: path(&hashed),
            stable_path: path(name),
            media_type: media_type(extension),
            bytes,
            hash,
            source: Source::BuiltIn,
        }
    }
}

/// The stable path of an asset.
pub(super) fn path(name: &str) -> String {
    format!("/assets/{}", utf8_percent_encode(name, ENCODED_IN_PATHS))
}

pub(super) fn extension(name: &str) -> &str {
    let file = name.rsplit('/').next().unwrap_or(name);
    file.rsplit_once('.').map_or("", |(_, extension)| extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assets_refer_to_one_another_by_name() {
        let mut assets = Assets::default();
        let font = Asset::new("serif.woff2", Bytes::from_static(b"font"));
        assets.by_name.insert("serif.woff2".to_owned(), font);
        let path = &assets.get("serif.woff2").unwrap().path;
        let css = assets.resolve("assets/style.css", "a { src: url(\"asset:serif.woff2\") }").unwrap();
        assert_eq!(css, format!("a {{ src: url(\"{path}\") }}"));
        assert!(path.starts_with("/assets/serif."), "{path}");

        for (text, line, why) in [
            ("\n\nurl(asset:none.png)", 3, "there is no asset none.png."),
            ("url(asset:serif.woff)", 1, "there is no asset serif.woff. Did you mean `serif.woff2`?"),
        ] {
            let fault = assets.resolve("assets/style.css", text).unwrap_err();
            assert_eq!(fault, SiteFailure::fault("assets/style.css", line, why));
        }
    }

    #[test]
    fn paths_are_what_browsers_ask_for() {
        let hash = Sha256::of(b"").short(12);
        for (name, stable, hashed) in [
            ("shots/one.png", "/assets/shots/one.png", format!("/assets/shots/one.{hash}.png")),
            ("v1.2/NOTES", "/assets/v1.2/NOTES", format!("/assets/v1.2/NOTES.{hash}")),
            ("a b#1?.png", "/assets/a%20b%231%3F.png", format!("/assets/a%20b%231%3F.{hash}.png")),
            ("Größe.PNG", "/assets/Gr%C3%B6%C3%9Fe.PNG", format!("/assets/Gr%C3%B6%C3%9Fe.{hash}.PNG")),
        ] {
            let asset = Asset::new(name, Bytes::new());
            assert_eq!((asset.stable_path.as_str(), asset.path), (stable, hashed));
        }
        assert_eq!(Asset::new("Größe.PNG", Bytes::new()).media_type, "image/png");
    }

    #[test]
    fn an_asset_that_did_not_change_is_held_once() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("assets")).unwrap();
        for name in ["film.mp4", "shot.png"] {
            std::fs::write(folder.path().join("assets").join(name), name).unwrap();
        }
        let content = Content::with_folder(folder.path()).unwrap();
        let before = Assets::read(&content, None, "").unwrap();
        std::fs::write(folder.path().join("assets/shot.png"), "other").unwrap();
        let after = Assets::read(&content, Some(&before), "").unwrap();
        let place = |assets: &Assets, name| assets.get(name).unwrap().bytes.as_ptr();
        assert_eq!(place(&before, "film.mp4"), place(&after, "film.mp4"));
        assert_eq!(after.get("shot.png").unwrap().bytes, "other");
    }
}
