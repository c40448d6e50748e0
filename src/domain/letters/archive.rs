//! Letters on the site: their addresses.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use super::image::LetterImage;
use super::letter::Letter;
use crate::domain::sha256::Sha256;
use crate::domain::time::Timestamp;

/// The path of the page that lists them.
pub const LETTERS_PATH: &str = "/letters";
const MAX_SLUG_CHARS: usize = 60;

/// A letter that everybody can read on the site.
#[derive(Clone, Debug)]
pub struct ArchivedLetter {
    pub letter: Letter,
    /// When it was started.
    pub sent: Timestamp,
}

/// The path of a letter's page. The words are for people; the beginning of the id tells letters with one subject apart.
pub fn letter_path(id: &Sha256, subject: &str) -> String {
    format!("{LETTERS_PATH}/{}-{}", slug(subject), id.short(6))
}

impl Letter {
    /// The path of an image, which differs for any two images of a letter.
    pub fn image_path(&self, image: &LetterImage) -> String {
        let page = letter_path(&self.id, &self.subject);
        format!("{page}/{}.{}", image.content_id().chars().take(16).collect::<String>(), image.format.extension())
    }
}

/// Returns the words in ASCII and lower case, as many as fit, without the marks above letters.
fn slug(subject: &str) -> String {
    let plain: String = subject.to_lowercase().replace('ß', "ss").nfkd().filter(|c| !is_combining_mark(*c)).collect();
    let mut slug = String::new();
    for word in plain.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        if !slug.is_empty() {
            if slug.len() + word.len() >= MAX_SLUG_CHARS {
                break;
            }
            slug.push('-');
        }
        slug.push_str(word);
    }
    slug.truncate(MAX_SLUG_CHARS);
    if slug.is_empty() { "letter".to_owned() } else { slug }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_the_words_of_the_subject_and_the_beginning_of_the_id() {
        let id = Sha256::of(b"# A");
        for (subject, slug) in [
            ("What is new in November", "what-is-new-in-november"),
            ("“Größe” & Élan: 5 × 3!", "grosse-elan-5-3"),
            ("新しい", "letter"),
            ("../../etc/passwd?x=1#y", "etc-passwd-x-1-y"),
            (&"word ".repeat(30), &"word-".repeat(12)[..59]),
            (&"a".repeat(150), &"a".repeat(60)),
        ] {
            assert_eq!(letter_path(&id, subject), format!("/letters/{slug}-{}", id.short(6)), "{subject}");
        }
    }
}
