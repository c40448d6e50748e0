//! Recognizes an Apple disk image (UDIF) by its trailer: the last 512 bytes of the file, which say
//! where everything else is.
//!
//! Only the trailer is checked, not the volume inside. Callers read the file.

pub const TRAILER_SIZE: usize = 512;

/// The media type of disk images.
pub const MEDIA_TYPE: &str = "application/x-apple-diskimage";

/// Tells a browser to save the file under this name, which has no quotation mark.
pub fn attachment(file: &str) -> String {
    format!("attachment; filename=\"{file}\"")
}

const SIGNATURE: &[u8] = b"koly";

/// Why a file is not a disk image. Completes a sentence such as "Troupe.dmg cannot be published: ….".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotADiskImage {
    #[error("it is only {0} bytes long")]
    TooShort(u64),
    #[error("it has no UDIF trailer: it is not a disk image, or it is truncated")]
    NoTrailer,
    #[error("its {part} extends past the end of the file, so the image is truncated")]
    Incomplete { part: &'static str },
}

/// What the trailer points at: its name, and the positions of its offset and length in the trailer.
const PARTS: [(&str, usize, usize); 3] =
    [("data", 0x18, 0x20), ("resource fork", 0x28, 0x30), ("property list", 0xd8, 0xe0)];

/// Checks the last bytes of a file of `file_length` bytes. `trailer` is ignored if the file is
/// shorter than a trailer.
pub fn check(trailer: &[u8; TRAILER_SIZE], file_length: u64) -> Result<(), NotADiskImage> {
    let trailer_start = match file_length.checked_sub(TRAILER_SIZE as u64) {
        None | Some(0) => return Err(NotADiskImage::TooShort(file_length)),
        Some(start) => start,
    };
    if !trailer.starts_with(SIGNATURE) {
        return Err(NotADiskImage::NoTrailer);
    }
    for (part, offset, length) in PARTS {
        let (offset, length) = (number(trailer, offset), number(trailer, length));
        if offset.checked_add(length).is_none_or(|end| end > trailer_start) {
            return Err(NotADiskImage::Incomplete { part });
        }
    }
    Ok(())
}

/// Reads the big-endian number at `position`.
fn number(trailer: &[u8; TRAILER_SIZE], position: usize) -> u64 {
    trailer[position..position + 8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
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

    #[test]
    fn a_complete_image_is_accepted() {
        assert_eq!(check(&trailer(), FILE_LENGTH), Ok(()));
        assert_eq!(check(&trailer(), FILE_LENGTH + 5000), Ok(()), "a signature may precede the trailer");
        let sample = include_bytes!("../../content/sample.dmg");
        assert_eq!(check(sample.last_chunk().unwrap(), sample.len() as u64), Ok(()));
    }

    #[test]
    fn a_file_no_longer_than_a_trailer_is_refused() {
        for length in [0, 1, 511, 512] {
            assert_eq!(check(&trailer(), length), Err(NotADiskImage::TooShort(length)));
        }
    }

    #[test]
    fn another_file_or_an_image_without_its_end_is_refused() {
        assert_eq!(check(&[0; TRAILER_SIZE], FILE_LENGTH), Err(NotADiskImage::NoTrailer));
        let mut late = trailer();
        late.rotate_right(1);
        assert_eq!(check(&late, FILE_LENGTH), Err(NotADiskImage::NoTrailer));
    }

    #[test]
    fn an_image_that_lacks_a_part_of_its_middle_is_refused() {
        assert_eq!(check(&trailer(), FILE_LENGTH - 1), Err(NotADiskImage::Incomplete { part: "property list" }));
        assert_eq!(check(&trailer(), FILE_LENGTH - 5000), Err(NotADiskImage::Incomplete { part: "data" }));
        let mut forked = trailer();
        put(&mut forked, 0x28, DATA);
        put(&mut forked, 0x30, 1001);
        assert_eq!(check(&forked, FILE_LENGTH), Err(NotADiskImage::Incomplete { part: "resource fork" }));
    }

    #[test]
    fn reasons_complete_a_sentence() {
        let sentence = |error: NotADiskImage| format!("Troupe.dmg cannot be published: {error}.");
        assert_eq!(sentence(NotADiskImage::TooShort(7)), "Troupe.dmg cannot be published: it is only 7 bytes long.");
        assert_eq!(
            sentence(NotADiskImage::Incomplete { part: "data" }),
            "Troupe.dmg cannot be published: its data extends past the end of the file, so the image is truncated."
        );
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
}
