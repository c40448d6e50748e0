//! Disk images: their file names, and how an Apple disk image (UDIF) is recognized by its trailer, the last 512 bytes of
//! the file, which say where everything else is.
//!
//! Only the trailer is checked, not the volume inside. Callers read the file.

use std::path::Path;

use super::version::Version;
use crate::domain::limits;
use crate::domain::parse::{Invalid, text_types};

pub const TRAILER_SIZE: usize = 512;

/// The media type of disk images.
pub const MEDIA_TYPE: &str = "application/x-apple-diskimage";

/// Tells a browser to save the file under this name, which has no quotation mark.
pub fn attachment(file: &str) -> String {
    format!("attachment; filename=\"{file}\"")
}

const SIGNATURE: &[u8] = b"koly";

/// What the trailer points at: its name, and the positions of its offset and length in the trailer.
const PARTS: [(&str, usize, usize); 3] =
    [("data", 0x18, 0x20), ("resource fork", 0x28, 0x30), ("property list", 0xd8, 0xe0)];

/// Checks the last bytes of a file of `file_length` bytes.
pub fn check(end: &[u8], file_length: u64) -> Result<(), Invalid> {
    let trailer_start = file_length.saturating_sub(TRAILER_SIZE as u64);
    let trailer = end.last_chunk().filter(|trailer| trailer_start > 0 && trailer.starts_with(SIGNATURE));
    let Some(trailer) = trailer else {
        return Err(Invalid::new(
            "it is not a disk image (.dmg), or it did not copy completely. Make one with Disk Utility or `hdiutil create`, or copy \
             it again",
        ));
    };
    for (part, offset, length) in PARTS {
        let (offset, length) = (number(trailer, offset), number(trailer, length));
        if offset.checked_add(length).is_none_or(|end| end > trailer_start) {
            let clause =
                format!("it did not copy completely: its {part} extends past the end of the file. Copy it again");
            return Err(Invalid::new(clause));
        }
    }
    Ok(())
}

/// Reads the big-endian number at `position`.
fn number(trailer: &[u8; TRAILER_SIZE], position: usize) -> u64 {
    trailer[position..position + 8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The file name of a published disk image. Every character is safe in a URL. Joined to a folder, it is a file in that
/// folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageName(String);

text_types!(ImageName);

impl ImageName {
    /// The name under which this version is published.
    pub fn new(app: &str, version: &Version) -> Result<Self, Invalid> {
        Self::parse(&format!("{}-{version}.dmg", file_stem(app)))
    }

    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let is_valid = |stem: &str| !stem.starts_with('.') && stem.chars().all(|c| is_safe(c) || c == '.');
        match text.strip_suffix(".dmg") {
            Some(stem) if !stem.is_empty() && is_valid(stem) && text.len() <= limits::MAX_IMAGE_NAME_BYTES => {
                Ok(Self(text.to_owned()))
            }
            _ => Err(Invalid::new("it is not a file name as `release publish` makes it, such as Troupe-1.4.0.dmg")),
        }
    }
}

impl AsRef<Path> for ImageName {
    fn as_ref(&self) -> &Path {
        Path::new(&self.0)
    }
}

/// Returns the app's name with only the characters that are safe in URLs and file names.
pub fn file_stem(app: &str) -> String {
    let words = app.split_whitespace().map(|word| word.chars().filter(|c| is_safe(*c)).collect::<String>());
    let stem = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-");
    if stem.is_empty() { "App".to_owned() } else { stem }
}

const fn is_safe(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DATA: u64 = 9000;
    const PROPERTY_LIST: u64 = 1000;
    const FILE_LENGTH: u64 = DATA + PROPERTY_LIST + TRAILER_SIZE as u64;

    fn put(trailer: &mut [u8; TRAILER_SIZE], position: usize, number: u64) {
        trailer[position..position + 8].copy_from_slice(&number.to_be_bytes());
    }

    /// The trailer of an image with some data, then a property list.
    fn trailer() -> [u8; TRAILER_SIZE] {
        let mut trailer = [0; TRAILER_SIZE];
        trailer[..12].copy_from_slice(b"koly\0\0\0\x04\0\0\x02\0");
        put(&mut trailer, 0x20, DATA);
        put(&mut trailer, 0xd8, DATA);
        put(&mut trailer, 0xe0, PROPERTY_LIST);
        trailer
    }

    fn why(trailer: &[u8; TRAILER_SIZE], length: u64) -> String {
        check(trailer, length).unwrap_err().to_string()
    }

    #[test]
    fn a_complete_image_is_accepted() {
        assert_eq!(check(&trailer(), FILE_LENGTH), Ok(()));
        assert_eq!(check(&trailer(), FILE_LENGTH + 5000), Ok(()), "a signature may precede the trailer");
        let sample = include_bytes!("../../../content/sample.dmg");
        assert_eq!(check(sample, sample.len() as u64), Ok(()));
    }

    #[test]
    fn a_file_no_longer_than_a_trailer_is_refused() {
        for length in [0, 1, 511, 512] {
            assert!(why(&trailer(), length).starts_with("it is not a disk image"));
        }
    }

    #[test]
    fn another_file_or_an_image_without_its_end_is_refused() {
        assert!(why(&[0; TRAILER_SIZE], FILE_LENGTH).starts_with("it is not a disk image"));
        let mut late = trailer();
        late.rotate_right(1);
        assert!(why(&late, FILE_LENGTH).starts_with("it is not a disk image"));
    }

    #[test]
    fn an_image_that_lacks_a_part_of_its_middle_is_refused() {
        assert!(why(&trailer(), FILE_LENGTH - 1).contains("its property list extends past the end"));
        assert!(why(&trailer(), FILE_LENGTH - 5000).contains("its data extends past the end"));
        let mut forked = trailer();
        put(&mut forked, 0x28, DATA);
        put(&mut forked, 0x30, 1001);
        assert!(why(&forked, FILE_LENGTH).contains("its resource fork extends past the end"));
    }

    proptest! {
        #[test]
        fn an_arbitrary_trailer_never_panics(
            rest in proptest::collection::vec(any::<u8>(), TRAILER_SIZE),
            signed in any::<bool>(),
            file_length in any::<u64>(),
        ) {
            let mut bytes: [u8; TRAILER_SIZE] = rest.try_into().unwrap();
            if signed {
                bytes[..12].copy_from_slice(&trailer()[..12]);
            }
            prop_assert!(check(&bytes, file_length).is_err() || signed);
        }

        #[test]
        fn an_accepted_image_has_everything_that_its_trailer_points_at(
            numbers in proptest::array::uniform6(prop_oneof![0..2000_u64, any::<u64>()]),
            file_length in prop_oneof![0..4000_u64, any::<u64>()],
        ) {
            let mut bytes = trailer();
            for (position, number) in [0x18, 0x20, 0x28, 0x30, 0xd8, 0xe0].into_iter().zip(numbers) {
                put(&mut bytes, position, number);
            }
            let ends = numbers.chunks(2).map(|part| u128::from(part[0]) + u128::from(part[1]));
            let fits = file_length > 512 && ends.max().unwrap() + 512 <= u128::from(file_length);
            prop_assert_eq!(check(&bytes, file_length).is_ok(), fits);
        }
    }

    #[test]
    fn published_names_are_safe_in_urls() {
        let name = |app: &str, version: &str| ImageName::new(app, &Version::parse(version).unwrap());
        assert_eq!(name("Troupe", "1.4.0").unwrap().as_str(), "Troupe-1.4.0.dmg");
        assert_eq!(name("Tea & Biscuits /2", "2.0.0-beta.1").unwrap().as_str(), "Tea-Biscuits-2-2.0.0-beta.1.dmg");
        assert_eq!(name("../..", "1.0.0").unwrap().as_str(), "App-1.0.0.dmg");
        assert!(name(&"x".repeat(300), "1.0.0").is_err());
        assert_eq!(file_stem("茶"), "App");
    }

    #[test]
    fn other_names_are_rejected() {
        for name in
            ["", ".dmg", "..", "../x.dmg", "a/b.dmg", "/etc/x.dmg", "a\\b.dmg", "a b.dmg", "a\0.dmg", ".lock", "x"]
        {
            assert!(ImageName::parse(name).is_err(), "{name:?}");
        }
    }
}
