//! What makers may want to change in the files of their site although it can be served, such as files that are not used. Nothing
//! here stops a build.

use std::collections::{BTreeSet, HashSet};
use std::fmt;

use super::built_in::{built_in, built_in_names};
use super::content::Content;
use crate::domain::releases::Release;
use crate::domain::text::did_you_mean;

const TEMPLATES: &str = "templates/";
/// Files that the site has beside the built-in ones, and files that a folder may have for other reasons.
const OTHER_FILES: [&str; 7] =
    ["words.toml", "appcast.xml", "porchlight.toml", "README.md", "LICENSE", "LICENSE.md", "LICENSE.txt"];

/// A sentence about a place in the files of the site.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SiteNote {
    file: String,
    line: Option<usize>,
    /// What follows the file in the sentence, without the full stop.
    what: String,
}

impl SiteNote {
    /// `what` follows the file and the line in the sentence.
    pub(super) fn new(file: impl Into<String>, line: Option<usize>, what: &str) -> Self {
        Self { file: file.into(), line, what: what.trim_end_matches('.').to_owned() }
    }

    pub(super) fn unused(file: impl Into<String>, why: impl fmt::Display) -> Self {
        Self::new(file, None, &format!("is not used: {why}"))
    }

    /// Whether it is about the notes of this release.
    pub fn is_about(&self, release: &Release) -> bool {
        self.file == notes_of(release)
    }

    /// Why this file is not used, if that is what the note says.
    pub(super) fn why_unused(&self, file: &str) -> Option<&str> {
        self.what.strip_prefix("is not used: ").filter(|_| self.file == file)
    }
}

/// What stands for a file in notes about release notes.
pub(super) fn notes_of(release: &Release) -> String {
    format!("The notes of release {}", release.version)
}

impl fmt::Display for SiteNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ", line {line},")?;
        }
        write!(f, " {}{}", self.what, if self.what.ends_with('?') { "" } else { "." })
    }
}

/// Files of the makers outside of `pages/` and `assets/` that nothing reads. `named` are the templates that pages name.
pub(super) fn unused_files(content: &Content, named: &HashSet<&str>) -> Vec<SiteNote> {
    let built_in_files: Vec<_> = built_in_names().collect();
    let known = || built_in_files.iter().map(String::as_str).chain(OTHER_FILES);
    let folders: BTreeSet<_> =
        built_in_files.iter().filter_map(|name| name.split_once('/')).map(|(folder, _)| folder).collect();
    let templates: Vec<_> = content.names(TEMPLATES).iter().filter_map(|file| content.text(file).ok()).collect();
    let is_used_template = |name: &str| {
        let quoted = [format!("\"{name}\""), format!("'{name}'")];
        named.contains(name) || templates.iter().any(|text| quoted.iter().any(|quoted| text.contains(quoted)))
    };
    let note = |file: &str| {
        let unknown_folder = file.split_once('/').filter(|(folder, _)| !folders.contains(folder));
        if built_in(file).is_some()
            || OTHER_FILES.contains(&file)
            || ["pages/", "assets/"].iter().any(|folder| file.starts_with(folder))
        {
            None
        } else if let Some((folder, _)) = unknown_folder {
            let meant = did_you_mean(folder, folders.iter().copied());
            Some(SiteNote::unused(format!("{folder}/"), format!("a site has no such folder.{meant}")))
        } else if let Some(name) = file.strip_prefix(TEMPLATES) {
            let why = "no page and no other template names it";
            (!is_used_template(name)).then(|| SiteNote::unused(file, format!("{why}.{}", did_you_mean(file, known()))))
        } else {
            Some(SiteNote::unused(file, format!("a site has no such file.{}", did_you_mean(file, known()))))
        }
    };
    content.own_names("").iter().filter_map(|file| note(file)).collect::<BTreeSet<_>>().into_iter().collect()
}
