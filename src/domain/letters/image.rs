//! Images in a letter. They are a part of it, so that nothing is loaded, and nobody learns who reads it.

use std::path::{Component, Path};

use percent_encoding::percent_decode_str;
use url::Url;

use crate::domain::parse::{Invalid, word_enum};
use crate::domain::sha256::{Sha256, Sha256Hasher};

/// The widest that an image is shown. Outlook knows no `max-width`, so it is told the size.
const MAX_SHOWN_WIDTH: u64 = 600;

/// The path of an image, relative to the folder of the letter and inside it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ImageName(String);

impl ImageName {
    /// Parses the destination of an image in Markdown.
    pub fn parse(destination: &str) -> Result<Self, Invalid> {
        if destination.starts_with("//") || Url::parse(destination).is_ok() {
            return Err(Invalid::new(
                "is not a file: a mail program would load it when the letter is opened, so its host would learn who reads the \
                 letter; save it in the folder of the letter",
            ));
        }
        let outside = || Invalid::new("is outside the folder of the letter; copy it there");
        let path = percent_decode_str(destination).decode_utf8().map_err(|_| outside())?;
        let mut names = Vec::new();
        for component in Path::new(path.as_ref()).components() {
            match component {
                Component::CurDir => {}
                Component::Normal(name) => names.extend(name.to_str()),
                _ => return Err(outside()),
            }
        }
        if names.is_empty() || path.contains(char::is_control) {
            return Err(Invalid::new("has no file name"));
        }
        Ok(Self(names.join("/")))
    }

    /// The name alone, without folders.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }
}

crate::domain::parse::from_stored!(ImageName);
crate::domain::parse::text_types!(ImageName);

word_enum! {
    /// What every mail program shows. The words are media types.
    pub enum ImageFormat {
        Png = "image/png",
        Jpeg = "image/jpeg",
        Gif = "image/gif",
    }
}

impl ImageFormat {
    /// What the names of such files end in.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpg",
            Self::Gif => "gif",
        }
    }
}

/// An image that can be part of a mail.
#[derive(Clone, PartialEq, Eq)]
pub struct LetterImage {
    pub name: ImageName,
    pub format: ImageFormat,
    /// In pixels.
    width: u32,
    height: u32,
    pub bytes: Vec<u8>,
}

impl LetterImage {
    /// Reads the format from the content, whatever the name says.
    pub fn parse(name: ImageName, bytes: Vec<u8>) -> Result<Self, Invalid> {
        let Some((format, size)) = format_and_size(&bytes) else {
            return Err(Invalid::new(
                "is neither PNG, JPEG nor GIF, which every mail program shows: export it as one of them",
            ));
        };
        match size {
            Some((width, height)) if width > 0 && height > 0 => Ok(Self { name, format, width, height, bytes }),
            _ => Err(Invalid::new("is damaged: its size in pixels cannot be read")),
        }
    }

    /// The size at which it is shown, where there is room.
    pub fn shown_size(&self) -> (u64, u64) {
        let (width, height) = (u64::from(self.width), u64::from(self.height));
        let shown = width.min(MAX_SHOWN_WIDTH);
        (shown, (height * shown / width).max(1))
    }

    /// Differs for any two images of all letters.
    pub fn content_id(&self) -> String {
        let mut hasher = Sha256Hasher::default();
        hasher.update(self.name.as_str().as_bytes());
        hasher.update(Sha256::of(&self.bytes).bytes());
        format!("{}@letter", hasher.finish().short(32))
    }
}

/// Without the bytes.
impl std::fmt::Debug for LetterImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} bytes)", self.name, self.bytes.len())
    }
}

/// The size is missing if the header is damaged.
fn format_and_size(bytes: &[u8]) -> Option<(ImageFormat, Option<(u32, u32)>)> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', rest @ ..] => Some((ImageFormat::Png, png_size(rest))),
        [0xff, 0xd8, 0xff, ..] => Some((ImageFormat::Jpeg, jpeg_size(&bytes[2..]))),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', rest @ ..] => {
            let size = rest
                .first_chunk::<4>()
                .map(|[w, x, h, i]| (u32::from_le_bytes([*w, *x, 0, 0]), u32::from_le_bytes([*h, *i, 0, 0])));
            Some((ImageFormat::Gif, size))
        }
        _ => None,
    }
}

fn png_size(chunks: &[u8]) -> Option<(u32, u32)> {
    let size = chunks.get(4..)?.strip_prefix(b"IHDR")?;
    Some((u32::from_be_bytes(*size.first_chunk()?), u32::from_be_bytes(*size.get(4..)?.first_chunk()?)))
}

/// The first frame header has the size. Before it there may be any number of other segments.
fn jpeg_size(mut segments: &[u8]) -> Option<(u32, u32)> {
    loop {
        let [0xff, marker, rest @ ..] = segments else { return None };
        segments = match (marker, rest) {
            // Fill bytes, and markers without a segment
            (0xff, _) => &segments[1..],
            (0x01 | 0xd0..=0xd7, _) => rest,
            (0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf, [_, _, _, h, i, w, x, ..]) => {
                return Some((u16::from_be_bytes([*w, *x]).into(), u16::from_be_bytes([*h, *i]).into()));
            }
            (_, [high, low, ..]) => rest.get(usize::from(u16::from_be_bytes([*high, *low]))..)?,
            _ => return None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x04\xb0\0\0\x02\x58\x08\x02";
    const JPEG: &[u8] = b"\xff\xd8\xff\xe0\0\x04JF\xff\xff\xc4\0\x03x\xff\xc2\0\x11\x08\x01\x2c\0\xc8\x03";
    const GIF: &[u8] = b"GIF89a\x20\x03\x01\0";

    fn image(bytes: &[u8]) -> Result<LetterImage, Invalid> {
        LetterImage::parse(ImageName::parse("a.png").unwrap(), bytes.to_vec())
    }

    #[test]
    fn format_and_size_come_from_the_content() {
        for (bytes, format, size) in [
            (PNG, ImageFormat::Png, (1200, 600)),
            (JPEG, ImageFormat::Jpeg, (200, 300)),
            (GIF, ImageFormat::Gif, (800, 1)),
        ] {
            let image = image(bytes).unwrap();
            assert_eq!((image.format, (image.width, image.height)), (format, size));
            for length in 0..bytes.len() {
                let _ = self::image(&bytes[..length]);
            }
            assert!(self::image(&bytes[..9]).is_err());
        }
        for wrong in [&b"<svg xmlns='http://www.w3.org/2000/svg'/>"[..], b"RIFF\0\0\0\0WEBPVP8 ", b"", b"\x89PNG"] {
            assert!(image(wrong).unwrap_err().to_string().starts_with("is neither PNG"));
        }
        assert!(image(b"GIF89a\0\0\x01\0").unwrap_err().to_string().starts_with("is damaged"));
    }

    #[test]
    fn an_image_is_shown_at_most_600_pixels_wide() {
        for (bytes, shown) in [(PNG, (600, 300)), (JPEG, (200, 300)), (GIF, (600, 1))] {
            assert_eq!(image(bytes).unwrap().shown_size(), shown);
        }
    }

    #[test]
    fn an_image_is_a_file_in_the_folder_of_the_letter() {
        for (destination, name) in [
            ("a.png", "a.png"),
            ("./b//c.png", "b/c.png"),
            ("two%20words.png", "two words.png"),
            ("a?b.png", "a?b.png"),
        ] {
            assert_eq!(ImageName::parse(destination).unwrap().as_str(), name);
        }
        for (destination, why) in [
            ("https://elsewhere.example/a.png", "is not a file"),
            ("//elsewhere.example/a.png", "is not a file"),
            ("data:image/png;base64,AAAA", "is not a file"),
            ("file:///etc/passwd", "is not a file"),
            ("/a.png", "is outside"),
            ("../a.png", "is outside"),
            ("a/../../b.png", "is outside"),
            ("%2e%2e/a.png", "is outside"),
            ("%ff.png", "is outside"),
            ("", "has no file name"),
            (".", "has no file name"),
            ("a%00.png", "has no file name"),
        ] {
            let error = ImageName::parse(destination).unwrap_err().to_string();
            assert!(error.starts_with(why), "{destination}: {error}");
        }
    }
}
