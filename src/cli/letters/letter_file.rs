//! Reads a letter from its Markdown file, with the images beside it.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use crate::cli::failure::{Failure, OrFail};
use crate::domain::letters::{ImageName, Letter};
use crate::domain::limits::MAX_LETTER_WITH_IMAGES_BYTES;
use crate::domain::parse::Invalid;

pub(super) fn read(file: &Path) -> Result<Letter, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string());
    let letter = text.and_then(|text| {
        let folder = file.parent().unwrap_or(file);
        Letter::parse_with_images(&text, |name| read_image(folder, name)).map_err(|error| error.to_string())
    });
    letter.or_fail(|why| format!("The letter in {} cannot be used: {why}.", file.display()))
}

fn read_image(folder: &Path, name: &ImageName) -> Result<Vec<u8>, Invalid> {
    let unreadable = |error: io::Error| Invalid::new(format!("cannot be read: {error}"));
    let folder = Path::new(".").join(folder).canonicalize().map_err(unreadable)?;
    let path = folder.join(name.as_str());
    if path.canonicalize().map_err(unreadable)? != path {
        return Err(Invalid::new(
            "is a symbolic link or below one, and may lead out of the folder of the letter; copy it there",
        ));
    }
    if !path.is_file() {
        return Err(Invalid::new("is not a regular file"));
    }
    // One byte more than may be, so that it is refused as too large.
    let (mut bytes, max) = (Vec::new(), MAX_LETTER_WITH_IMAGES_BYTES as u64 + 1);
    File::open(&path).and_then(|file| file.take(max).read_to_end(&mut bytes)).map_err(unreadable)?;
    Ok(bytes)
}
