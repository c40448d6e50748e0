//! How the monthly letter looks: its HTML, and the same as plain text.

use std::sync::Arc;

use serde_json::json;

use super::assets::Assets;
use super::markdown::Anchored;
use super::templates::Templates;
use super::{Content, SiteFacts, SiteFailure};
use crate::domain::base_url::BaseUrl;
use crate::domain::letter::Letter;

/// What letters are written on: the site's own templates `letter.html` and `letter.txt`.
#[derive(Debug)]
pub struct LetterTemplate {
    facts: SiteFacts,
    templates: Templates,
    base_url: BaseUrl,
    postal_address: String,
}

/// What differs from person to person.
#[derive(Clone, Debug)]
pub struct LetterRecipient {
    /// Of the opt-in, as `2026-11-15`.
    pub opted_in: String,
    /// What the opt-in came through, such as `the site`.
    pub through: String,
    pub unsubscribe_url: String,
}

/// A letter as it arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedLetter {
    pub html: String,
    pub text: String,
}

impl LetterTemplate {
    /// # Errors
    /// With the file and line of the site that is at fault.
    pub fn read(content: &Content, base_url: BaseUrl, postal_address: &str) -> Result<Self, SiteFailure> {
        let assets = Arc::new(Assets::read(content)?);
        Ok(Self {
            facts: SiteFacts::read(content)?,
            templates: Templates::read(content, &assets)?,
            base_url,
            postal_address: postal_address.to_owned(),
        })
    }

    /// # Errors
    /// When a template cannot be filled in.
    pub fn render(&self, letter: &Letter, to: &LetterRecipient) -> Result<RenderedLetter, SiteFailure> {
        let absolute = Anchored::new(&letter.body).with_absolute_links(self.base_url.as_str());
        let context = json!({
            "app": self.facts,
            "base_url": self.base_url.as_str(),
            "subject": letter.subject,
            "body_html": super::markdown::markdown_to_html(&absolute),
            "body_text": absolute.trim_end(),
            "postal_address": self.postal_address,
            "opted_in": to.opted_in,
            "through": to.through,
            "unsubscribe_url": to.unsubscribe_url,
        });
        Ok(RenderedLetter {
            html: self.templates.render("letter.html", &context)?,
            text: self.templates.render("letter.txt", &context)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(markdown: &str) -> RenderedLetter {
        let base_url = BaseUrl::parse("https://troupe.example").unwrap();
        let letter_template = LetterTemplate::read(&Content::default(), base_url, "1 Lamp Street\nOldtown").unwrap();
        let to = LetterRecipient {
            opted_in: "2026-10-02".to_owned(),
            through: "the site".to_owned(),
            unsubscribe_url: "https://troupe.example/unsubscribe/TOKEN".to_owned(),
        };
        letter_template.render(&Letter::parse(markdown).unwrap(), &to).unwrap()
    }

    #[test]
    fn both_parts_say_the_same_and_how_to_leave() {
        let written = write("# What is new\n\n*Bots* answer sooner: [read on](/releases). <b>x</b>\n");
        assert!(written.html.contains("<em>Bots</em> answer sooner: <a href=\"https://troupe.example/releases\">"));
        assert!(written.text.contains("*Bots* answer sooner: [read on](https://troupe.example/releases)."));
        for part in [&written.html, &written.text] {
            for fact in
                ["1 Lamp Street", "Oldtown", "2026-10-02", "the site", "https://troupe.example/unsubscribe/TOKEN"]
            {
                assert!(part.contains(fact), "{fact}: {part}");
            }
        }
        assert!(!written.html.contains("<b>x</b>"));
    }

    #[test]
    fn nothing_in_a_letter_tells_that_it_was_read() {
        let written = write("# What is new\n\n<img src=\"https://elsewhere.example/pixel.gif\">\n\nText\n");
        for tracker in ["<img", "<link", "<script", "url(", "@import", "pixel.gif"] {
            assert!(!written.html.contains(tracker), "{tracker}: {}", written.html);
        }
    }
}
