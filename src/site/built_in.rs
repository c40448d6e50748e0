//! The files that come with the program. Makers replace any of them by a file of the same name, for which they can have a copy.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use rust_embed::RustEmbed;

use crate::domain::text::did_you_mean;

#[derive(RustEmbed)]
#[folder = "content"]
struct Embedded;

/// The content of a file.
pub(super) fn built_in(name: &str) -> Option<Bytes> {
    Embedded::get(name).map(|file| match file.data {
        Cow::Borrowed(data) => Bytes::from_static(data),
        Cow::Owned(data) => data.into(),
    })
}

/// The names of all files, sorted.
pub fn built_in_names() -> impl Iterator<Item = String> {
    Embedded::iter().map(Cow::into_owned)
}

/// Writes these files into a folder, or none of them if one is unknown, or is there already and `overwrite` is not set. Returns
/// where they are.
pub fn copy_built_in(folder: &Path, names: &[String], overwrite: bool) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for name in names {
        let bytes = built_in(name).ok_or_else(|| {
            format!("Nothing was written: there is no built-in file {name}.{} `--list` lists them.", similar(name))
        })?;
        let path = folder.join(name);
        if !overwrite && path.symlink_metadata().is_ok() {
            let path = path.display();
            return Err(format!("Nothing was written: {path} exists already. Add `--force` to overwrite it."));
        }
        files.push((path, bytes));
    }
    let write = |(path, bytes): (PathBuf, Bytes)| match write(&path, &bytes, overwrite) {
        Ok(()) => Ok(path),
        Err(error) => Err(format!("{} cannot be written: {error}.", path.display())),
    };
    files.into_iter().map(write).collect()
}

fn write(path: &Path, bytes: &[u8], overwrite: bool) -> io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    let mut options = fs::OpenOptions::new();
    options.write(true).truncate(true).create(overwrite).create_new(!overwrite);
    options.open(path)?.write_all(bytes)
}

/// Suggests the file that has this name in some folder, or the one whose name is most like it.
fn similar(name: &str) -> String {
    let names: Vec<_> = built_in_names().collect();
    let file = format!("/{name}");
    match names.iter().find(|known| known.ends_with(&file)) {
        Some(known) => format!(" Did you mean `{known}`?"),
        None => did_you_mean(name, names.iter().map(String::as_str)),
    }
}
