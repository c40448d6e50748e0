//! A site to begin with: the files that `porchlight new` writes, for an app of any name.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;

use rust_embed::RustEmbed;

use super::content::Content;
use super::language::Language;
use crate::domain::parse::Invalid;
use crate::domain::releases::file_stem;
use crate::domain::time::Day;

/// Pages read facts from `site.toml`, so only a few files contain placeholders: `%NAME%` and `%MAKER%` (strings in
/// TOML), `%TITLE%` (the name in XML), `%LETTER%`, `%SLUG%` and `%DATE%`. `%SAMPLE%` is before a text that makers replace.
#[derive(RustEmbed)]
#[folder = "starter"]
struct Starter;

/// Characters of a name.
const MAX_NAME_CHARS: usize = 60;

/// The name of an app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppName(String);

impl AppName {
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let name = text.trim();
        if name.is_empty() {
            return Err(Invalid::new("it is empty"));
        }
        if name.chars().any(char::is_control) {
            return Err(Invalid::new("it contains a line break or another control character"));
        }
        if name.chars().count() > MAX_NAME_CHARS {
            return Err(Invalid::new(format!("it has more than {MAX_NAME_CHARS} characters")));
        }
        Ok(Self(name.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Where the files of each further language are, which take the place of the English ones.
const TRANSLATIONS: &str = "languages/";

/// The languages that a new site can be written in.
pub fn starter_languages() -> BTreeSet<String> {
    let translated = Starter::iter().filter_map(|file| {
        file.strip_prefix(TRANSLATIONS).and_then(|rest| rest.split_once('/')).map(|(language, _)| language.to_owned())
    });
    translated.chain([Language::ENGLISH.to_owned()]).collect()
}

/// Writes a site for an app of this name. Returns the names of the files.
pub fn write_starter(folder: &Path, name: &AppName, language: &str, today: Day) -> Result<Vec<String>, String> {
    let unwritable = |why| format!("The site cannot be written to {}: {why}.", folder.display());
    match fs::read_dir(folder).map(Iterator::count) {
        Ok(0) => {}
        Ok(_) => {
            let folder = folder.display();
            return Err(format!("Nothing was written: {folder} is not empty. Choose an empty or new folder."));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(unwritable(error)),
    }
    let placeholders = placeholders(&name.0, language, &today.date());
    let files: Vec<_> = Starter::iter().map(Cow::into_owned).filter(|file| !file.starts_with(TRANSLATIONS)).collect();
    for file in &files {
        let path = folder.join(file);
        let translated = format!("{TRANSLATIONS}{language}/{file}");
        let source = if Starter::get(&translated).is_some() { &translated } else { file };
        let write = || {
            fs::create_dir_all(path.parent().unwrap_or(folder))?;
            fs::File::create_new(&path)?.write_all(&render(source, &placeholders))
        };
        write().map_err(unwritable)?;
    }
    Ok(files)
}

/// A text of a new site that the makers have not replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleText {
    pub file: String,
    pub line: usize,
    pub text: String,
}

/// Finds the texts of a new site in `site.toml` and on all pages. What cannot be read is reported by the build.
pub(super) fn sample_texts(content: &Content) -> Vec<SampleText> {
    let samples = Starter::iter().filter_map(|file| String::from_utf8(Starter::get(&file)?.data.into_owned()).ok());
    let samples: Vec<_> = samples.flat_map(|text| marked_texts(&text)).collect();
    let files = std::iter::once("site.toml".to_owned()).chain(content.names("pages/"));
    let mut found = Vec::new();
    for file in files {
        let text = content.text(&file).unwrap_or_default();
        for (line, number) in text.lines().zip(1..) {
            if let Some(sample) = samples.iter().find(|sample| line.contains(*sample)) {
                found.push(SampleText { file: file.clone(), line: number, text: sample.clone() });
            }
        }
    }
    found
}

/// The texts that follow `%SAMPLE%`, up to the end of a string, of a line, or to another placeholder.
fn marked_texts(file: &str) -> Vec<String> {
    let marked = file.lines().filter_map(|line| line.split_once("%SAMPLE%"));
    marked.map(|(_, text)| text.split(['"', '%']).next().unwrap_or_default().to_owned()).collect()
}

/// The placeholders and what replaces them.
fn placeholders(name: &str, language: &str, today: &str) -> [(&'static str, String); 7] {
    let maker = match language {
        "de" => format!("Das Team von {name}"),
        "fr" => format!("L’équipe {name}"),
        _ => format!("The makers of {name}"),
    };
    let letter = name.chars().next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    [
        ("SAMPLE", String::new()),
        ("DATE", today.to_owned()),
        ("SLUG", file_stem(name).to_ascii_lowercase()),
        ("LETTER", in_xml(&letter)),
        ("TITLE", in_xml(name)),
        ("MAKER", toml::Value::from(maker).to_string()),
        ("NAME", toml::Value::from(name).to_string()),
    ]
}

/// Returns the content of a file. Pictures have no placeholders.
fn render(file: &str, placeholders: &[(&str, String)]) -> Vec<u8> {
    let content = Starter::get(file).map(|file| file.data.into_owned()).unwrap_or_default();
    match String::from_utf8(content) {
        Ok(text) => replace_placeholders(&text, placeholders).into_bytes(),
        Err(picture) => picture.into_bytes(),
    }
}

/// Reads the text once, so that a name may contain any placeholder.
fn replace_placeholders(text: &str, placeholders: &[(&str, String)]) -> String {
    let mut parts = text.split('%');
    let mut replaced = parts.next().unwrap_or_default().to_owned();
    while let Some(part) = parts.next() {
        match placeholders.iter().find(|(placeholder, _)| *placeholder == part) {
            Some((_, by)) => replaced.extend([by, parts.next().unwrap_or_default()]),
            None => replaced.extend(["%", part]),
        }
    }
    replaced
}

fn in_xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::SiteFacts;

    #[test]
    fn the_facts_of_any_app_can_be_read() {
        for name in
            ["Quill & Ink", "Say \"hi\"", "C:\\Notes", "Übersicht", "日本", "'quoted'", "%DATE%", "%NAME%", "R<D>"]
        {
            let folder = tempfile::tempdir().unwrap();
            let files =
                write_starter(folder.path(), &AppName::parse(name).unwrap(), "en", Day::parse("2026-11-15").unwrap());
            assert!(files.unwrap().contains(&"pages/home.md".to_owned()));
            let content = Content::with_folder(folder.path()).unwrap();
            assert_eq!(SiteFacts::read(&content).unwrap().name, name);
            let samples: Vec<_> = sample_texts(&content).into_iter().map(|sample| sample.file).collect();
            let of = |file: &str| samples.iter().filter(|sample| *sample == file).count();
            assert_eq!((of("site.toml"), of("pages/home.md"), of("pages/about.md")), (4, 5, 1));
            for file in ["site.toml", "pages/home.md", "pages/about.md", "assets/icon.svg"] {
                let text = fs::read_to_string(folder.path().join(file)).unwrap();
                assert!(!text.contains("%S") && !text.contains("%T"), "{file}: {text}");
            }
        }
        assert_eq!(sample_texts(&Content::default()), []);
    }

    #[test]
    fn a_name_is_one_line_of_reasonable_length() {
        assert_eq!(AppName::parse("  Tea Time "), Ok(AppName("Tea Time".to_owned())));
        assert_eq!(AppName::parse(" "), Err(Invalid::new("it is empty")));
        assert!(AppName::parse("a\nb").unwrap_err().to_string().contains("a line break"));
        assert!(AppName::parse(&"é".repeat(61)).unwrap_err().to_string().contains("more than 60"));
        assert!(AppName::parse(&"é".repeat(60)).is_ok());
    }

    #[test]
    fn nothing_is_written_to_a_folder_with_files() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("site.toml"), "mine").unwrap();
        let written = write_starter(folder.path(), &AppName("Tea".to_owned()), "en", Day::parse("2026-11-15").unwrap());
        assert!(written.unwrap_err().starts_with("Nothing was written"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
