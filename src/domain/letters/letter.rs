//! The monthly letter: its Markdown source, its delivery counts, and the links in mails, with which people unsubscribe from it and
//! confirm their opt-in.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use comrak::Arena;
use comrak::nodes::NodeValue;
use serde::Serialize;

use super::image::{ImageName, LetterImage};
use crate::domain::limits;
use crate::domain::markdown::{self, letter_options};
use crate::domain::parse::{Invalid, word_enum};
use crate::domain::sha256::{Sha256, hex, is_hex};
use crate::domain::text::{FrontMatter, clean_text, excerpt};

/// A letter that can be sent: its Markdown and the images in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// The hash of the Markdown and the images. Sending the same file again resumes the letter.
    pub id: Sha256,
    pub subject: String,
    /// What mail programs show beside the subject, if the front matter has a line `preview`.
    pub preview: Option<String>,
    /// The whole file, with its front matter.
    pub markdown: String,
    /// The Markdown below the front matter.
    pub body: String,
    /// By name, each once.
    pub images: Vec<Arc<LetterImage>>,
}

impl Letter {
    /// Parses a letter without images.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        Self::parse_with_images(text, |_| Err(Invalid::new("is missing")))
    }

    /// Parses a Markdown file, with the images that `read` returns. The subject is `subject` of the front matter, else the text
    /// of the first heading.
    pub fn parse_with_images(
        text: &str,
        read: impl FnMut(&ImageName) -> Result<Vec<u8>, Invalid>,
    ) -> Result<Self, Invalid> {
        if text.len() > limits::MAX_LETTER_BYTES {
            let max = limits::MAX_LETTER_BYTES / 1024;
            return Err(Invalid::new(format!("it is larger than {max} KiB, and mail clients truncate such messages")));
        }
        let text = clean_text(text);
        let (front_matter, body) = FrontMatter::split(&text)?;
        if body.trim().is_empty() {
            return Err(Invalid::new("it is empty"));
        }
        markdown::check_depth(&body, &letter_options())?;
        let subject = field(front_matter.as_ref(), "subject").or_else(|| first_heading(&body)).ok_or_else(|| {
            Invalid::new("it has no subject: give it a first heading, or front matter with a line `subject: …`")
        })?;
        if subject.chars().count() > limits::MAX_LETTER_SUBJECT_CHARS {
            let max = limits::MAX_LETTER_SUBJECT_CHARS;
            return Err(Invalid::new(format!("its subject is longer than {max} characters")));
        }
        let first_line = front_matter.map_or(0, |front_matter| front_matter.end_line);
        let images = read_images(&body, first_line, limits::MAX_LETTER_WITH_IMAGES_BYTES - text.len(), read)?;
        Ok(Self::from_stored(identity(&text, &images), subject, text.trim_end(), images))
    }

    /// Restores a letter from the database, without checking it again.
    pub fn from_stored(id: Sha256, subject: String, markdown: &str, images: Vec<Arc<LetterImage>>) -> Self {
        let (front_matter, body) = FrontMatter::split(markdown).unwrap_or_else(|_| (None, markdown.to_owned()));
        Self {
            id,
            subject,
            preview: field(front_matter.as_ref(), "preview"),
            markdown: markdown.to_owned(),
            body: body.trim().to_owned() + "\n",
            images,
        }
    }

    /// Returns the image that a destination in the Markdown names.
    pub fn image(&self, destination: &str) -> Option<&LetterImage> {
        let name = ImageName::parse(destination).ok()?;
        self.images.iter().find(|image| image.name == name).map(Arc::as_ref)
    }
}

/// A letter without images is known by its text alone.
fn identity(text: &str, images: &[Arc<LetterImage>]) -> Sha256 {
    let text = Sha256::of(text.trim().as_bytes());
    let images = images.iter().map(|image| *Sha256::of(&image.bytes).bytes());
    let hashes: Vec<_> = [*text.bytes()].into_iter().chain(images).collect();
    if hashes.len() == 1 { text } else { Sha256::of(&hashes.concat()) }
}

/// A line of the front matter, which may have quotes around it.
pub(super) fn field(front_matter: Option<&FrontMatter>, name: &str) -> Option<String> {
    let value = front_matter?.get(name)?;
    let unquoted = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
    Some(unquoted.unwrap_or(value).trim().to_owned()).filter(|value| !value.is_empty())
}

/// The text of the first heading that has one, of any level.
fn first_heading(body: &str) -> Option<String> {
    let arena = Arena::new();
    let headings = markdown::parse(&arena, body, &letter_options()).descendants();
    let mut texts = headings.filter(|node| matches!(node.data().value, NodeValue::Heading(_))).map(|heading| {
        let text = markdown::without_anchor(heading);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    });
    texts.find(|text| !text.is_empty())
}

/// Reads the images of a letter whose first line is the one after `lines_above`.
fn read_images(
    body: &str,
    lines_above: usize,
    max_bytes: usize,
    mut read: impl FnMut(&ImageName) -> Result<Vec<u8>, Invalid>,
) -> Result<Vec<Arc<LetterImage>>, Invalid> {
    let (arena, mut images, mut bytes) = (Arena::new(), BTreeMap::new(), 0);
    for node in markdown::parse(&arena, body, &letter_options()).descendants() {
        let NodeValue::Image(link) = &node.data().value else { continue };
        let number = lines_above + node.data().sourcepos.start.line;
        let fault = |why: &str| Invalid::new(format!("in line {number}, the image {} {why}", excerpt(&link.url, 200)));
        let name = ImageName::parse(&link.url).map_err(|why| fault(&why.to_string()))?;
        if node.collect_text().trim().is_empty() {
            return Err(fault(
                "has no text for those who cannot see it: write what it shows between the brackets, as in ![A lamp](lamp.png)",
            ));
        }
        if images.contains_key(&name) {
            continue;
        }
        let image = read(&name).and_then(|bytes| LetterImage::parse(name.clone(), bytes));
        let image = image.map_err(|why| fault(&why.to_string()))?;
        bytes += image.bytes.len();
        if bytes > max_bytes {
            return Err(fault("is too large: a letter and its images have at most 1 MiB together"));
        }
        images.insert(name, Arc::new(image));
        if images.len() > limits::MAX_LETTER_IMAGES {
            return Err(fault(&format!("is one too many: a letter has at most {}", limits::MAX_LETTER_IMAGES)));
        }
    }
    Ok(images.into_values().collect())
}

word_enum! {
    /// Who may send a letter.
    pub enum LetterRun {
        /// Whoever runs `letter send`.
        Command = "command",
        /// Every instance of the service.
        Service = "service",
        /// Nobody, until somebody goes on with it.
        Stopped = "stopped",
    }
}

impl LetterRun {
    /// Says why somebody else does not send it, without a full stop.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Command => "A command sends this letter",
            Self::Service => "The service sends this letter",
            Self::Stopped => "This letter was stopped",
        }
    }
}

word_enum! {
    pub enum RecipientState {
        /// Not sent yet, or deferred by the mail server.
        Waiting = "waiting",
        /// Handed to the mail server, whose reply was not recorded. Never sent again automatically.
        Uncertain = "uncertain",
        Sent = "sent",
        /// Permanently rejected by the mail server.
        Refused = "refused",
        /// Opted out or suppressed in the meantime, or already had a letter this month.
        Skipped = "skipped",
    }
}

/// How many recipients a letter has, and how many of them are in which [`RecipientState`]: the counts from `sent` to `skipped` add
/// up to `recipients`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LetterCounts {
    pub recipients: u64,
    pub sent: u64,
    pub waiting: u64,
    pub uncertain: u64,
    pub refused: u64,
    pub skipped: u64,
    /// Sent or uncertain, and returned as undeliverable. Not a state.
    pub bounced: u64,
}

impl LetterCounts {
    /// Those of the states, then `bounced`.
    pub const fn named(&self) -> [(&'static str, u64); 6] {
        [
            ("sent", self.sent),
            ("waiting", self.waiting),
            ("uncertain", self.uncertain),
            ("refused", self.refused),
            ("skipped", self.skipped),
            ("bounced", self.bounced),
        ]
    }
}

/// The path of all unsubscribe pages, up to the token.
pub const UNSUBSCRIBE_PATH: &str = "/unsubscribe/";
/// Stands for the token in copies that no recipient gets: a test, or a preview.
pub const TEST_COPY_TOKEN: &str = "nobody";
/// The path of all confirmation pages, up to the token.
pub const CONFIRMATION_PATH: &str = "/confirm/";

/// A token of this many random bytes, in hexadecimal digits. It cannot be guessed, and reveals nothing about the person.
#[derive(Clone, PartialEq, Eq)]
pub struct RandomToken<const BYTES: usize>(String);

/// The last path segment of a link in a mail: 160 bits.
pub type UnsubscribeToken = RandomToken<20>;
pub type ConfirmationToken = RandomToken<20>;

word_enum! {
    /// What the recipient of a letter asks for.
    pub enum UnsubscribeKind {
        /// No letters until the person opts in again.
        Unsubscribe = "unsubscribe",
        /// Another person entered the address: no letters ever, not even after an opt-in.
        NotMe = "not-me",
    }
}

/// What the link in a mail leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// The opt-in waits for its confirmation.
    Pending,
    Confirmed,
    /// The owner of the address said that they had not asked for mail.
    Declined,
}

impl<const BYTES: usize> RandomToken<BYTES> {
    pub const BYTES: usize = BYTES;

    pub fn from_random(bytes: [u8; BYTES]) -> Self {
        Self(hex(&bytes))
    }

    /// Parses a token. Returns `None` if `text` does not have the form of one.
    pub fn parse(text: &str) -> Option<Self> {
        is_hex(text, BYTES).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path of the page below `path`, such as [`UNSUBSCRIBE_PATH`].
    pub fn path(&self, path: &str) -> String {
        format!("{path}{}", self.0)
    }
}

/// Does not reveal the token: anyone who has it can act for the person.
impl<const BYTES: usize> fmt::Debug for RandomToken<BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(not shown)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every image is there but `missing.png`.
    fn with_images(text: &str) -> Result<Letter, Invalid> {
        const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01";
        Letter::parse_with_images(text, |name| match name.as_str() {
            "missing.png" => Err(Invalid::new("is missing")),
            "a.svg" => Ok(b"<svg/>".to_vec()),
            "large.png" => Ok([PNG, &vec![0; 1024 * 1024]].concat()),
            _ => Ok(PNG.to_vec()),
        })
    }

    #[test]
    fn the_subject_comes_from_the_front_matter_or_else_from_the_first_heading() {
        let named = Letter::parse("---\nsubject: \"November: bots\"\n---\n# Hello\n\nText\n").unwrap();
        assert_eq!((named.subject.as_str(), named.body.as_str()), ("November: bots", "# Hello\n\nText\n"));
        for (text, subject) in [
            ("Intro\n\n# **What is new**\n\nText\n", "What is new"),
            ("## A *second* `level` [link](/x)\n", "A second level link"),
            ("```\n# code\n```\n\n    # code\n\n<!--\n# hidden\n-->\n\n### After\n", "After"),
            ("Two\nlines\n===\n", "Two lines"),
            ("#\n\n# Second\n", "Second"),
            ("> # Quoted <b>x</b> ![a](a.png)\n", "Quoted x a"),
            ("# Closed ##\n", "Closed"),
            ("# Named {#name}\n", "Named"),
            ("# 5 \\* 3 &amp; \"more\"\n", "5 * 3 & “more”"),
            ("---\nsubject: 'Its *own*'\npreview: \"p\"\n---\n# Heading\n", "Its *own*"),
        ] {
            assert_eq!(with_images(text).unwrap().subject, subject, "{text}");
        }
    }

    #[test]
    fn a_letter_that_cannot_be_sent_is_refused() {
        for (text, error) in [
            ("", "it is empty"),
            ("---\nsubject: A\n---\n \n", "it is empty"),
            (
                "---\na: b\n---\n\n# A\n\n![b](https://elsewhere.example/pixel.gif)",
                "in line 7, the image https://elsewhere",
            ),
            ("# A\n\nText\n![b](/c.png)", "in line 4, the image /c.png is outside"),
            ("# A\n\n> ![](a.png)", "in line 3, the image a.png has no text for those who cannot see it"),
            ("# A\n\n![ ][b]\n\n[b]: a.png", "in line 3, the image a.png has no text"),
            ("# A\n\n![b](missing.png)", "in line 3, the image missing.png is missing"),
            ("# A\n\n![b](a.svg)", "in line 3, the image a.svg is neither PNG"),
            ("# A\n\n![b](large.png)", "in line 3, the image large.png is too large"),
            (
                &("# A\n\n".to_owned() + &(0..21).map(|i| format!("![b]({i}.png)\n")).collect::<Vec<_>>().concat()),
                "in line 23, the image 20.png is one too many",
            ),
            ("---\nsubject: A\n", "its front matter does not end"),
            ("Only text\n\n    # code\n", "it has no subject"),
            ("---\nsubject:\n---\nText", "it has no subject"),
            (&format!("# {}\n", "a".repeat(151)), "its subject is longer than 150"),
            (&"a".repeat(65 * 1024), "it is larger than 64 KiB"),
        ] {
            let found = with_images(text).unwrap_err().to_string();
            assert!(found.starts_with(error), "{text:.40}: {found}");
        }
    }

    #[test]
    fn a_subject_is_one_line_without_control_characters() {
        let letter = Letter::parse("# A\u{0}\u{1b}[2J b\r\n\nText").unwrap();
        assert_eq!(letter.subject, "A[2J b");
    }

    #[test]
    fn the_same_text_is_the_same_letter() {
        let id = |text| Letter::parse(text).unwrap().id;
        assert_eq!(id("# A\n\nText\n"), id("\u{feff}# A\r\n\r\nText\r\n\r\n"));
        assert_ne!(id("# A\n\nText\n"), id("# A\n\nText!\n"));
        assert_eq!(id("# A").hex(), Sha256::of(b"# A").hex());

        let picture = "# A\n\n![b](a.png) ![again](a.png)\n";
        let letter = with_images(picture).unwrap();
        assert_eq!((letter.images.len(), letter.id), (1, with_images(picture).unwrap().id));
        let other = Letter::parse_with_images(picture, |_| Ok(b"GIF89a\x01\0\x01\0".to_vec())).unwrap();
        assert_ne!(letter.id, other.id, "another image under the same name");
        let stored = Letter::from_stored(letter.id, letter.subject.clone(), &letter.markdown, letter.images.clone());
        assert_eq!(stored, letter);
    }

    #[test]
    fn a_token_is_parsed_as_it_was_printed_and_nothing_else_is_accepted() {
        let token = RandomToken::<20>::from_random([0xa5; 20]);
        assert_eq!(RandomToken::<20>::parse(token.as_str()), Some(token.clone()));
        let text = token.as_str();
        for wrong in ["", &text[1..], &text.to_uppercase(), &format!("{text}0"), &text.replace('a', "g")] {
            assert_eq!(RandomToken::<20>::parse(wrong), None, "{wrong}");
        }
        assert!(!format!("{token:?}").contains("a5"));
    }
}
