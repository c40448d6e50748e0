//! A letter that is written at the desk and was not sent.

use std::sync::Arc;

use uuid::Uuid;

use super::image::{ImageName, LetterImage};
use super::letter::{Letter, field};
use crate::domain::limits;
use crate::domain::parse::Invalid;
use crate::domain::text::FrontMatter;
use crate::domain::time::Timestamp;

#[derive(Clone, Debug)]
pub struct Draft {
    pub id: Uuid,
    /// The whole file, with its front matter.
    pub markdown: String,
    pub saved: Timestamp,
    pub images: Vec<Arc<LetterImage>>,
}

/// What the fields of the page are filled with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DraftFields {
    /// Empty: the subject is the first heading.
    pub subject: String,
    pub preview: String,
    pub body: String,
}

impl Draft {
    /// Returns the letter that would be sent.
    pub fn letter(&self) -> Result<Letter, Invalid> {
        Letter::parse_with_images(&self.markdown, |name| {
            let image = self.images.iter().find(|image| image.name == *name);
            image.map(|image| image.bytes.clone()).ok_or_else(|| Invalid::new("is not among the images of this draft"))
        })
    }

    pub fn fields(&self) -> DraftFields {
        DraftFields::split(&self.markdown)
    }
}

impl DraftFields {
    pub fn split(markdown: &str) -> Self {
        let (front_matter, body) = FrontMatter::split(markdown).unwrap_or_else(|_| (None, markdown.to_owned()));
        let field = |name| field(front_matter.as_ref(), name).unwrap_or_default();
        Self { subject: field("subject"), preview: field("preview"), body: body.trim_start_matches('\n').to_owned() }
    }

    /// Returns the Markdown file. Without a subject and a preview line, it has no front matter.
    pub fn join(&self) -> String {
        let line = |name, value: &str| {
            let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
            // The quotes around a value are no part of it.
            let quoted = ['"', '\''].iter().any(|quote| value.starts_with(*quote) && value.ends_with(*quote));
            match (value.is_empty(), quoted) {
                (true, _) => String::new(),
                (false, true) => format!("{name}: \"{value}\"\n"),
                (false, false) => format!("{name}: {value}\n"),
            }
        };
        let front_matter = line("subject", &self.subject) + &line("preview", &self.preview);
        match front_matter.as_str() {
            "" => self.body.clone(),
            front_matter => format!("---\n{front_matter}---\n\n{}", self.body),
        }
    }

    /// What a list calls the draft: its subject, or the beginning of its text.
    pub fn title(&self) -> &str {
        let lines = std::iter::once(self.subject.as_str()).chain(self.body.lines());
        let mut lines = lines.map(|line| line.trim_start_matches('#').trim());
        lines.find(|line| !line.is_empty()).unwrap_or("Without a subject")
    }
}

impl ImageName {
    /// Makes a name of that of an uploaded file, which Markdown can have as it is.
    pub fn of_upload(file: &str) -> Self {
        let file = file.rsplit(['/', '\\']).next().unwrap_or_default().to_lowercase();
        let is_kept = |c: char| c.is_alphanumeric() || c == '.' || c == '_';
        let name: String = file
            .chars()
            .map(|c| if is_kept(c) { c } else { '-' })
            .take(limits::MAX_UPLOADED_IMAGE_NAME_CHARS)
            .collect();
        let name = name.trim_matches(['-', '.']);
        Self::from_stored(if name.is_empty() { "image".to_owned() } else { name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(subject: &str, preview: &str, body: &str) -> DraftFields {
        DraftFields { subject: subject.to_owned(), preview: preview.to_owned(), body: body.to_owned() }
    }

    #[test]
    fn fields_become_a_file_and_are_read_from_it_again() {
        for written in [
            fields("", "", "# Hello\n\nText\n"),
            fields("News: \"all\" of it", "", "Text"),
            fields("'Quoted'", "\"Both\"", "---\nText"),
            fields("A", "B", "# Not the subject"),
            fields("", "Only this", ""),
        ] {
            assert_eq!(DraftFields::split(&written.join()), written);
        }
        assert_eq!(fields("a\nb: c", "", "x").join(), "---\nsubject: a b: c\n---\n\nx", "one line");
        assert_eq!(fields("", "", "\n## What is new\n").title(), "What is new");
        assert_eq!(fields("", "", "").title(), "Without a subject");
    }

    #[test]
    fn the_name_of_an_upload_can_stand_in_markdown() {
        for (file, name) in [
            ("Lamp.PNG", "lamp.png"),
            ("C:\\pictures\\My Lamp (1).png", "my-lamp--1-.png"),
            ("../../etc/passwd", "passwd"),
            ("Лампа 2.png", "лампа-2.png"),
            ("--", "image"),
            (".", "image"),
            ("a<b>\"c.gif", "a-b--c.gif"),
        ] {
            let made = ImageName::of_upload(file);
            assert_eq!(made.as_str(), name);
            assert_eq!(ImageName::parse(name).unwrap(), made);
        }
    }
}
