//! The monthly letter: what a maker wrote, and how it goes.
//!
//! Nothing here knows how it looks in a mail reader, or how it gets there.

use super::limits;
use super::sha256::Sha256;
use super::text::clean_text;

/// A letter as a maker wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// The same for the same file: a letter that is sent again goes on where it was.
    pub id: Sha256,
    pub subject: String,
    /// Markdown.
    pub body: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLetter {
    #[error("it says nothing")]
    Empty,
    #[error("its front matter does not end with a line of ---")]
    OpenFrontMatter,
    #[error("it has no subject: give it a first heading, or front matter with a line `subject: …`")]
    NoSubject,
    #[error(
        "it has a picture, which mail readers fetch when the letter is read, and that tells on the reader; link to it"
    )]
    Picture,
    #[error("its subject is over {} characters", limits::MAX_LETTER_SUBJECT_CHARS)]
    LongSubject,
    #[error("it is over {} KiB, and mail readers cut such letters off", limits::MAX_LETTER_BYTES / 1024)]
    TooLong,
}

impl Letter {
    /// Reads a Markdown file. Its subject is `subject` of the front matter, else its first heading.
    ///
    /// # Errors
    /// Says what keeps it from being sent.
    pub fn parse(text: &str) -> Result<Self, InvalidLetter> {
        if text.len() > limits::MAX_LETTER_BYTES {
            return Err(InvalidLetter::TooLong);
        }
        let text = clean_text(text);
        let (front_matter, body) = split(&text)?;
        if body.trim().is_empty() {
            return Err(InvalidLetter::Empty);
        }
        if body.contains("![") {
            return Err(InvalidLetter::Picture);
        }
        let named = front_matter.iter().find_map(|line| line.strip_prefix("subject:"));
        let heading = || body.lines().find_map(|line| line.strip_prefix("# "));
        let subject = named.or_else(heading).map(plain).filter(|subject| !subject.is_empty());
        let subject = subject.ok_or(InvalidLetter::NoSubject)?;
        if subject.chars().count() > limits::MAX_LETTER_SUBJECT_CHARS {
            return Err(InvalidLetter::LongSubject);
        }
        Ok(Self { id: Sha256::of(text.trim().as_bytes()), subject, body: body.trim().to_owned() + "\n" })
    }
}

/// The lines between two `---` at the top, if there are such, and what follows them.
fn split(text: &str) -> Result<(Vec<&str>, String), InvalidLetter> {
    let mut lines = text.lines();
    if lines.clone().next().map(str::trim_end) != Some("---") {
        return Ok((Vec::new(), text.to_owned()));
    }
    lines.next();
    let mut front_matter = Vec::new();
    for line in lines.by_ref() {
        if line.trim_end() == "---" {
            return Ok((front_matter, lines.collect::<Vec<_>>().join("\n")));
        }
        front_matter.push(line);
    }
    Err(InvalidLetter::OpenFrontMatter)
}

/// A line without the signs of Markdown and YAML around it.
fn plain(line: &str) -> String {
    line.trim().trim_matches(['"', '\'', '*', '`']).trim().to_owned()
}

/// How a letter goes. All but the first add up to the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LetterCounts {
    pub recipients: u64,
    pub sent: u64,
    pub waiting: u64,
    /// Claimed, and nobody noted whether the mail server took it. Never sent again by itself.
    pub uncertain: u64,
    pub refused: u64,
    /// Opted out meanwhile, or had a letter this month.
    pub skipped: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subject_is_that_of_the_front_matter_else_the_first_heading() {
        let named = Letter::parse("---\nsubject: \"November: bots\"\n---\n# Hello\n\nText\n").unwrap();
        assert_eq!((named.subject.as_str(), named.body.as_str()), ("November: bots", "# Hello\n\nText\n"));
        let headed = Letter::parse("Intro\n\n# **What is new**\n\nText\n").unwrap();
        assert_eq!(headed.subject, "What is new");
    }

    #[test]
    fn what_cannot_be_sent_is_refused() {
        for (text, why) in [
            ("", InvalidLetter::Empty),
            ("---\nsubject: A\n---\n \n", InvalidLetter::Empty),
            ("# A\n\n![b](https://elsewhere.example/pixel.gif)", InvalidLetter::Picture),
            ("---\nsubject: A\n", InvalidLetter::OpenFrontMatter),
            ("Only text\n\n## A second heading\n", InvalidLetter::NoSubject),
            ("---\nsubject:\n---\nText", InvalidLetter::NoSubject),
            (&format!("# {}\n", "a".repeat(151)), InvalidLetter::LongSubject),
            (&"a".repeat(65 * 1024), InvalidLetter::TooLong),
        ] {
            assert_eq!(Letter::parse(text), Err(why), "{text:.40}");
        }
    }

    #[test]
    fn a_subject_is_one_line_without_control_characters() {
        let letter = Letter::parse("# A\u{0}\u{1b}[2J b\r\n\nText").unwrap();
        assert_eq!(letter.subject, "A[2J b");
    }

    #[test]
    fn the_same_words_are_the_same_letter() {
        let id = |text| Letter::parse(text).unwrap().id;
        assert_eq!(id("# A\n\nText\n"), id("\u{feff}# A\r\n\r\nText\r\n\r\n"));
        assert_ne!(id("# A\n\nText\n"), id("# A\n\nText!\n"));
    }
}
