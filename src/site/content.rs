//! The files of the site, and errors in them. Each file that is embedded in the program is replaced by a file of the same
//! name in `site_dir`.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::built_in::{built_in, built_in_names};
use crate::config::Settings;
use crate::domain::limits::MAX_LETTER_HTML_BYTES;

#[derive(Clone, Debug, Default)]
pub struct Content {
    /// Canonical, so that a path can be checked to be inside it.
    folder: Option<PathBuf>,
    /// Not part of the site if it is inside of the folder. It may not exist yet.
    data_dir: Option<PathBuf>,
    is_worked_on: bool,
}

impl Content {
    /// The embedded site, with the setting `site_dir` laid over it if it is set.
    pub fn from_settings(settings: &Settings) -> Result<Self, SiteFailure> {
        let overriding = settings.site_dir.as_deref().map(Self::with_folder).transpose()?.unwrap_or_default();
        let is_preview = settings.site_dir.is_some() && settings.public_url().is_loopback();
        let is_worked_on = settings.watches_site || is_preview;
        Ok(Self { data_dir: Some(settings.data_dir.clone()), is_worked_on, ..overriding })
    }

    /// The embedded site with a folder laid over it.
    pub fn with_folder(folder: &Path) -> Result<Self, SiteFailure> {
        let resolved = folder.canonicalize().ok().filter(|folder| folder.is_dir());
        let folder = resolved.ok_or_else(|| SiteFailure::NoFolder(folder.display().to_string()))?;
        Ok(Self { folder: Some(folder), ..Self::default() })
    }

    /// Whether the makers look at the site while they change it.
    pub fn is_worked_on(&self) -> bool {
        self.is_worked_on
    }

    pub fn bytes(&self, name: &str) -> Result<Bytes, SiteFailure> {
        if let Some(path) = self.overriding(name)? {
            let bytes = std::fs::read(&path).map_err(|error| SiteFailure::fault(name, 1, error.to_string()))?;
            return Ok(bytes.into());
        }
        built_in(name).ok_or_else(|| SiteFailure::Missing(name.to_owned()))
    }

    pub fn text(&self, name: &str) -> Result<String, SiteFailure> {
        String::from_utf8(self.bytes(name)?.into()).map_err(|_| SiteFailure::fault(name, 1, "it is not UTF-8"))
    }

    /// A file of the built-in site, whatever the makers have.
    pub(super) fn built_in_text(name: &str) -> Option<String> {
        String::from_utf8(built_in(name)?.into()).ok()
    }

    pub fn has(&self, name: &str) -> bool {
        matches!(self.overriding(name), Ok(Some(_))) || built_in(name).is_some()
    }

    /// The names of all files that start with `prefix`, such as `assets/`.
    pub fn names(&self, prefix: &str) -> BTreeSet<String> {
        built_in_names().chain(self.overriding_names()).filter(|name| name.starts_with(prefix)).collect()
    }

    /// The names of the files in `site_dir` that start with `prefix`, sorted.
    pub(super) fn own_names(&self, prefix: &str) -> Vec<String> {
        let mut names = self.overriding_names();
        names.retain(|name| name.starts_with(prefix));
        names
    }

    /// The file of a page: that of the makers, else the built-in one in this language, else the English one.
    pub(super) fn page_file(&self, name: &str, language: &str, is_of_site: bool) -> String {
        let (file, translated) = (format!("pages/{name}.md"), format!("languages/{language}/pages/{name}.md"));
        let is_own = is_of_site && matches!(self.overriding(&file), Ok(Some(_)));
        if !is_own && self.has(&translated) { translated } else { file }
    }

    /// The state of a file in `site_dir`, or why it cannot be used: it leads elsewhere, is no regular file or is larger than
    /// `max_mebibytes`.
    pub(super) fn check_own(&self, name: &str, max_mebibytes: u64) -> Result<FileState, String> {
        let path = match self.overriding(name) {
            Ok(path) => path.ok_or("it is not a file")?,
            Err(SiteFailure::Fault { why, .. }) => return Err(why),
            Err(failure) => return Err(failure.to_string()),
        };
        let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
        if metadata.len() > max_mebibytes * 1024 * 1024 {
            return Err(format!("it is larger than {max_mebibytes} MiB"));
        }
        Ok(FileState {
            inode: metadata.ino(),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }

    /// A hash that changes when a file in `site_dir` does.
    pub fn fingerprint(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        if let Some(folder) = &self.folder {
            for name in self.overriding_names() {
                let metadata = std::fs::metadata(folder.join(&name)).ok();
                let modified = metadata.as_ref().and_then(|metadata| metadata.modified().ok());
                (name, modified, metadata.map(|metadata| metadata.len())).hash(&mut hasher);
            }
        }
        hasher.finish()
    }

    /// The names of all files in `site_dir`.
    fn overriding_names(&self) -> Vec<String> {
        let data_dir = self.data_dir.as_ref().and_then(|folder| folder.canonicalize().ok());
        self.folder.iter().flat_map(|folder| files_below(folder, folder, data_dir.as_deref())).collect()
    }

    /// The path of the file in `site_dir`, if there is one.
    fn overriding(&self, name: &str) -> Result<Option<PathBuf>, SiteFailure> {
        let Some(folder) = &self.folder else { return Ok(None) };
        match folder.join(name).canonicalize() {
            Ok(path) if path.starts_with(folder) => Ok(path.is_file().then_some(path)),
            Ok(_) => Err(SiteFailure::fault(name, 1, "it leads out of the site's folder")),
            Err(_) => Ok(None),
        }
    }
}

/// The names of all files relative to `root`, except hidden ones and those below `excluded`.
fn files_below(root: &Path, folder: &Path, excluded: Option<&Path>) -> Vec<String> {
    let mut names = Vec::new();
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b".")) {
        let path = entry.path();
        if excluded == Some(&path) {
            continue;
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            names.extend(files_below(root, &path, excluded));
        } else if let Some(name) = path.strip_prefix(root).ok().and_then(Path::to_str) {
            names.push(name.to_owned());
        }
    }
    names.sort();
    names
}

/// What differs after a file was written or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileState {
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// An error in the files of a site.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SiteFailure {
    #[error("The setting `site_dir` cannot be used: {0} is not a folder that can be read.")]
    NoFolder(String),
    #[error("The site has no file {0}.")]
    Missing(String),
    #[error("The site's file {file} has a fault in line {line}: {why}{}", if why.ends_with(['?', '.']) { "" } else { "." })]
    Fault { file: String, line: usize, why: String },
    #[error(
        "The letter is {} KB long as HTML, and Gmail cuts off what follows {} KB, such as the unsubscribe link. Shorten it, or put \
         a part of it on the site and link to that.",
        .0.div_ceil(1000),
        MAX_LETTER_HTML_BYTES / 1000
    )]
    LetterTooLong(usize),
}

impl SiteFailure {
    pub(super) fn fault(file: &str, line: usize, why: impl Into<String>) -> Self {
        Self::Fault { file: file.to_owned(), line, why: why.into() }
    }

    /// Counts the lines of the file from its beginning if the fault is in a part of it, which `lines` are above.
    pub(super) fn below(self, in_file: &str, lines: usize) -> Self {
        match self {
            Self::Fault { file, line, why } if file == in_file => Self::Fault { file, line: line + lines, why },
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_the_folder_replaces_the_embedded_one() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("assets")).unwrap();
        std::fs::write(folder.path().join("site.toml"), "mine").unwrap();
        std::fs::write(folder.path().join("assets/extra.svg"), "<svg/>").unwrap();
        let content = Content::with_folder(folder.path()).unwrap();
        assert_eq!(content.text("site.toml").unwrap(), "mine");
        assert_eq!(content.text("pages/home.md"), Content::default().text("pages/home.md"));
        assert!(content.names("assets/").contains("assets/extra.svg"));
        assert!(content.names("assets/").contains("assets/style.css"));
    }

    #[test]
    fn no_file_outside_the_folder_is_read() {
        let outside = tempfile::tempdir().unwrap();
        let secret = outside.path().join("secret.md");
        std::fs::write(&secret, "secret").unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(&secret, folder.path().join("site.toml")).unwrap();
        let content = Content::with_folder(folder.path()).unwrap();
        assert!(content.text("site.toml").unwrap_err().to_string().contains("leads out of the site's folder"));
        let up = format!("../{}/secret.md", outside.path().file_name().unwrap().to_str().unwrap());
        assert!(content.text(&up).is_err());
    }

    #[test]
    fn a_data_folder_inside_is_not_part_of_the_site() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["data", "pages"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let data_dir = Some(folder.path().join("data"));
        let content = Content { data_dir, ..Content::with_folder(folder.path()).unwrap() };
        let before = content.fingerprint();
        std::fs::write(folder.path().join("data/porchlight.db"), "data").unwrap();
        assert_eq!(content.fingerprint(), before);
        assert!(content.names("data/").is_empty());
        std::fs::write(folder.path().join("pages/home.md"), "a page").unwrap();
        assert_ne!(content.fingerprint(), before);
    }

    #[test]
    fn a_missing_folder_is_named() {
        let failure = Content::with_folder(Path::new("/no/such/folder")).unwrap_err();
        assert!(failure.to_string().contains("/no/such/folder"));
    }
}
