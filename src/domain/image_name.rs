//! File names of disk images.

use std::fmt;
use std::path::Path;

use super::limits;
use super::version::Version;

/// The file name of a published disk image. Every character is safe in a URL. Joined to a folder, it is a file in that
/// folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageName(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not a file name as `release publish` makes it, such as Troupe-1.4.0.dmg")]
pub struct InvalidImageName;

impl ImageName {
    /// The name under which this version is published.
    pub fn new(app: &str, version: &Version) -> Result<Self, InvalidImageName> {
        Self::parse(&format!("{}-{version}.dmg", file_stem(app)))
    }

    pub fn parse(text: &str) -> Result<Self, InvalidImageName> {
        let is_valid = |stem: &str| !stem.starts_with('.') && stem.chars().all(|c| is_safe(c) || c == '.');
        match text.strip_suffix(".dmg") {
            Some(stem) if !stem.is_empty() && is_valid(stem) && text.len() <= limits::MAX_IMAGE_NAME_BYTES => {
                Ok(Self(text.to_owned()))
            }
            _ => Err(InvalidImageName),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ImageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<Path> for ImageName {
    fn as_ref(&self) -> &Path {
        Path::new(&self.0)
    }
}

/// Returns the app's name with only the characters that are safe in URLs and file names.
pub fn file_stem(app: &str) -> String {
    let words = app.split_whitespace().collect::<Vec<_>>().join("-");
    let stem: String = words.chars().filter(|c| is_safe(*c)).collect();
    if stem.is_empty() { "App".to_owned() } else { stem }
}

const fn is_safe(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_names_are_safe_in_urls() {
        let name = |app: &str, version: &str| ImageName::new(app, &Version::parse(version).unwrap());
        assert_eq!(name("Troupe", "1.4.0").unwrap().as_str(), "Troupe-1.4.0.dmg");
        assert_eq!(name("Tea & Biscuits /2", "2.0.0-beta.1").unwrap().as_str(), "Tea--Biscuits-2-2.0.0-beta.1.dmg");
        assert_eq!(name("../..", "1.0.0").unwrap().as_str(), "App-1.0.0.dmg");
        assert_eq!(name(&"x".repeat(300), "1.0.0"), Err(InvalidImageName));
        assert_eq!(file_stem("茶"), "App");
    }

    #[test]
    fn other_names_are_rejected() {
        for name in
            ["", ".dmg", "..", "../x.dmg", "a/b.dmg", "/etc/x.dmg", "a\\b.dmg", "a b.dmg", "a\0.dmg", ".lock", "x"]
        {
            assert_eq!(ImageName::parse(name), Err(InvalidImageName), "{name:?}");
        }
    }
}
