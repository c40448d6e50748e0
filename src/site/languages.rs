//! The languages that the site speaks: its own, and those that single pages name.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde_json::{Value, json};

use super::content::{Content, SiteFailure};
use super::language::{Language, Words};
use super::page::{PageAddress, PageFile};
use super::templates::Templates;
use crate::domain::network::BaseUrl;
use crate::domain::text::did_you_mean;

/// The words and templates of each language. English is always among them, for agents and developers.
#[derive(Debug)]
pub(super) struct Languages {
    site: Language,
    by_language: BTreeMap<Language, (Words, Templates)>,
}

impl Languages {
    pub(super) fn new(
        content: &Content,
        templates: &Templates,
        site: &Language,
        of_pages: impl Iterator<Item = Language>,
    ) -> Result<Self, SiteFailure> {
        let mut by_language = BTreeMap::new();
        for language in [site.clone(), Language::default()].into_iter().chain(of_pages) {
            if let Entry::Vacant(unknown) = by_language.entry(language) {
                let words = Words::read(content, unknown.key())?;
                let templates = templates.in_language(&words);
                unknown.insert((words, templates));
            }
        }
        Ok(Self { site: site.clone(), by_language })
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Language> {
        self.by_language.keys()
    }

    pub(super) fn words(&self, language: &Language) -> &Words {
        &self.in_language(language).0
    }

    pub(super) fn templates(&self, language: &Language) -> &Templates {
        &self.in_language(language).1
    }

    pub(super) fn english(&self) -> &Templates {
        self.templates(&Language::default())
    }

    /// Adds the members of an object as global variables, in every language.
    pub(super) fn define(&mut self, variables: &Value) {
        for (_, templates) in self.by_language.values_mut() {
            templates.define(variables);
        }
    }

    /// A path of the service, which begins with the language if that is not the site's.
    pub(super) fn path(&self, language: &Language, path: &str) -> String {
        if *language == self.site { path.to_owned() } else { format!("/{language}{path}") }
    }

    /// Adds the facts as global variables, with the sentences that the program makes of them in each language.
    pub(super) fn define_facts(&mut self, app: &Value, sample: &Value) {
        for (words, templates) in self.by_language.values_mut() {
            let (mut app, mut sample) = (app.clone(), sample.clone());
            let translate = |sentence: &mut Value| {
                if let Value::String(english) = sentence {
                    *english = words.translate(english);
                }
            };
            for name in ["price_words", "signature_words", "system"] {
                app.get_mut(name).map(translate);
            }
            app.get_mut("first_open").and_then(Value::as_array_mut).into_iter().flatten().for_each(translate);
            sample.get_mut("note").map(translate);
            templates.define(&json!({ "app": app, "sample": sample }));
        }
    }

    fn in_language(&self, language: &Language) -> &(Words, Templates) {
        self.by_language.get(language).unwrap_or_else(|| &self.by_language[&self.site])
    }
}

/// Refuses translations of pages that do not exist, are translations themselves, or have the same language.
pub(super) fn check_translations(files: &[(PageAddress, PageFile)]) -> Result<(), SiteFailure> {
    for (_, file) in files {
        let Some(original) = &file.translation_of else { continue };
        let paths = || files.iter().map(|(address, _)| address.path.as_str());
        let why = match files.iter().find(|(address, _)| address.path == *original) {
            None => format!("there is no page {original} that it could translate.{}", did_you_mean(original, paths())),
            Some((_, other)) if other.translation_of.is_some() => {
                format!("{original} is a translation itself; name the page that it translates")
            }
            Some((_, other)) if other.language == file.language => {
                format!("{original} has the same language, {}; set `language`", file.language)
            }
            Some(_) => continue,
        };
        return Err(file.fault("translation_of", why));
    }
    Ok(())
}

/// The page and its translations as the variable `translations` lists them; none, if it has none.
pub(super) fn translations(
    pages: &[(PageAddress, Language, Option<String>)],
    of: &PageAddress,
    languages: &Languages,
    base_url: &BaseUrl,
) -> Vec<Value> {
    let original = |(address, _, translation_of): &(PageAddress, Language, Option<String>)| {
        translation_of.clone().unwrap_or_else(|| address.path.clone())
    };
    let Some(wanted) = pages.iter().find(|(address, ..)| address == of).map(original) else { return Vec::new() };
    let same: Vec<_> = pages.iter().filter(|page| original(page) == wanted).collect();
    if same.len() < 2 {
        return Vec::new();
    }
    let listed = same.into_iter().map(|(address, language, _)| {
        json!({
            "language": language.as_str(),
            "name": languages.words(language).word("site", "language"),
            "path": address.path,
            "url": base_url.to(&address.path),
            "current": address == of,
        })
    });
    listed.collect()
}
