//! The words of the service that visitors see, in the language of the site or of one page. JSON, MCP and the log are English.

use std::fmt;

use serde_json::{Map, Value, json};

use super::content::{Content, SiteFailure};
use crate::domain::parse::Invalid;
use crate::domain::text::{did_you_mean, line_at};

/// Words of the makers, in a table for each language.
const OWN_WORDS: &str = "words.toml";
/// The group of translations of sentences of the service, such as errors in a form, each under the English one.
const SENTENCES: &str = "sentences";

/// A language tag such as `fr` or `pt-BR`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Language(String);

impl Language {
    pub const ENGLISH: &str = "en";

    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let mut parts = text.split('-');
        let is_primary =
            |part: &str| (2..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_lowercase());
        let is_further =
            |part: &str| (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if parts.next().is_some_and(is_primary) && parts.all(is_further) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Invalid::new("write a language as de, fr or pt-BR"))
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_english(&self) -> bool {
        self.0 == Self::ENGLISH || self.0.starts_with("en-")
    }
}

impl Default for Language {
    fn default() -> Self {
        Self(Self::ENGLISH.to_owned())
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// All words of one language. What it has no words for is English.
#[derive(Clone, Debug)]
pub(super) struct Words {
    pub language: Language,
    /// The variable `words` of the templates: groups of words.
    pub groups: Value,
}

impl Words {
    pub(super) fn read(content: &Content, language: &Language) -> Result<Self, SiteFailure> {
        let english = "words/en.toml";
        let text = Content::built_in_text(english).ok_or_else(|| SiteFailure::Missing(english.to_owned()))?;
        let mut groups = table(english, &text)?;
        groups.insert(SENTENCES.to_owned(), Value::Object(Map::new()));
        let known = groups.clone();
        let built_in = format!("words/{language}.toml");
        if let Some(text) = Content::built_in_text(&built_in).filter(|_| built_in != english) {
            add(&mut groups, table(&built_in, &text)?, &known, &built_in, &text)?;
        }
        if content.has(OWN_WORDS) {
            let text = content.text(OWN_WORDS)?;
            if let Some(Value::Object(own)) = table(OWN_WORDS, &text)?.remove(language.as_str()) {
                add(&mut groups, own, &known, OWN_WORDS, &text)?;
            }
        }
        Ok(Self { language: language.clone(), groups: Value::Object(groups) })
    }

    /// A word, such as `word("confirmation", "subject")`.
    pub(super) fn word(&self, group: &str, name: &str) -> &str {
        self.groups[group][name].as_str().unwrap_or_default()
    }

    /// What the site's script says, as JSON. Its own words are English.
    pub(super) fn for_script(&self) -> Option<String> {
        let (form, site) = (&self.groups["form"], &self.groups["site"]);
        let words = json!({
            "unreachable": form["unreachable"],
            "left": form["left"],
            "over": form["over"],
            "copy": site["copy"],
            "copied": site["copied"],
            "notCopied": site["not_copied"],
        });
        (!self.language.is_english()).then(|| words.to_string())
    }

    /// A sentence of the service in this language, if it has a translation. A translation may stand for many sentences: `{}` is
    /// what differs, and is translated, too.
    pub(super) fn translate(&self, sentence: &str) -> String {
        let sentences = self.groups[SENTENCES].as_object().into_iter().flatten();
        let mut translations =
            sentences.filter_map(|(english, translated)| Some((english.as_str(), translated.as_str()?)));
        let translated = translations.find_map(|(english, translated)| match english.split_once("{}") {
            None => (english == sentence).then(|| translated.to_owned()),
            Some((before, after)) => {
                let value = sentence.strip_prefix(before)?.strip_suffix(after)?;
                Some(translated.replace("{}", &self.translate(value)))
            }
        });
        translated.unwrap_or_else(|| sentence.to_owned())
    }
}

/// Replaces each `{name}` in a word by its value.
pub(super) fn fill(word: &str, values: &[(&str, &str)]) -> String {
    values.iter().fold(word.to_owned(), |word, (name, value)| word.replace(&format!("{{{name}}}"), value))
}

fn table(file: &str, text: &str) -> Result<Map<String, Value>, SiteFailure> {
    toml::from_str(text).map_err(|error| {
        SiteFailure::fault(file, error.span().map_or(1, |span| line_at(text, span.start)), error.message())
    })
}

/// Lays words over those there are. Only known ones can be, each with a value of the same kind.
fn add(
    groups: &mut Map<String, Value>,
    added: Map<String, Value>,
    known: &Map<String, Value>,
    file: &str,
    text: &str,
) -> Result<(), SiteFailure> {
    let fault = |name: &str, why: String| {
        let place = text.find(name).unwrap_or_default();
        SiteFailure::fault(file, line_at(text, place), why)
    };
    for (group, words) in added {
        let (Some(Value::Object(known_words)), Value::Object(words)) = (known.get(&group), words) else {
            let meant = did_you_mean(&group, known.keys().map(String::as_str));
            return Err(fault(&group, format!("there is no group of words `{group}`.{meant}")));
        };
        for (name, word) in words {
            let is_of_kind = known_words.get(&name).map(|known| known.is_array() == word.is_array());
            if is_of_kind != Some(true) && group != SENTENCES {
                let meant = did_you_mean(&name, known_words.keys().map(String::as_str));
                return Err(fault(&name, format!("`{group}` has no such word `{name}`.{meant}")));
            }
            groups[&group][&name] = word;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(own: &str) -> Result<Words, SiteFailure> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(OWN_WORDS), own).unwrap();
        Words::read(&Content::with_folder(folder.path()).unwrap(), &Language::parse("eo").unwrap())
    }

    #[test]
    fn own_words_are_laid_over_those_of_the_service() {
        let words = words("[eo.form]\nemail = \"Via retadreso\"\n[fr.form]\nemail = \"x\"\n").unwrap();
        assert_eq!(words.word("form", "email"), "Via retadreso");
        assert_eq!(words.word("form", "name"), "Your name");
    }

    #[test]
    fn an_unknown_word_is_named_with_its_line_and_the_nearest_one() {
        for (own, sentence) in [
            ("[eo.from]\nemail = \"x\"\n", "line 1: there is no group of words `from`. Did you mean `form`?"),
            (
                "[eo.form]\nemail = \"x\"\nemial = \"y\"\n",
                "line 3: `form` has no such word `emial`. Did you mean `email`?",
            ),
            ("[eo.date]\nmonths = \"x\"\n", "line 2: `date` has no such word `months`."),
            ("[eo.form]\nemail = 1 2\n", "words.toml has a fault in line 2: "),
        ] {
            let failure = words(own).unwrap_err().to_string();
            assert!(failure.contains(sentence), "{failure}");
        }
    }

    #[test]
    fn one_translation_stands_for_sentences_that_differ_in_a_value() {
        let words =
            words("[eo.sentences]\n\"It is wrong: {}.\" = \"Ĝi malĝustas: {}!\"\n\"too long\" = \"tro longa\"\n")
                .unwrap();
        assert_eq!(words.translate("It is wrong: too long."), "Ĝi malĝustas: tro longa!");
        assert_eq!(words.translate("It is wrong: 7."), "Ĝi malĝustas: 7!");
        assert_eq!(words.translate("Something else."), "Something else.");
    }

    #[test]
    fn a_language_is_a_tag() {
        for tag in ["de", "fr", "pt-BR", "zh-Hans-CN"] {
            assert_eq!(Language::parse(tag).unwrap().as_str(), tag);
        }
        for text in ["", "deutsch", "DE", "de_DE", "de-", "../de"] {
            assert!(Language::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn german_and_french_have_every_word_with_the_same_values() {
        let placeholders = |word: &Value| {
            let text = word.to_string();
            let names =
                text.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name.to_owned());
            names.collect::<std::collections::BTreeSet<_>>()
        };
        let built_in =
            |language: &str| table("", &Content::built_in_text(&format!("words/{language}.toml")).unwrap()).unwrap();
        let english = built_in("en");
        for language in ["de", "fr"] {
            let translated = built_in(language);
            for (group, words) in &english {
                for (name, word) in words.as_object().unwrap() {
                    let other = &translated[group][name];
                    assert_eq!(other.is_array(), word.is_array(), "{language}: {group}.{name}");
                    assert!(!other.is_null(), "{language}: {group}.{name}");
                    if group != "date" && (group.as_str(), name.as_str()) != ("busy", "detail") {
                        assert_eq!(placeholders(other), placeholders(word), "{language}: {group}.{name}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_words_of_the_opt_in_are_those_that_a_consent_records() {
        let english = Words::read(&Content::default(), &Language::default()).unwrap();
        assert_eq!(english.word("form", "opt_in"), crate::domain::signups::OPT_IN_TEXT);
    }
}
