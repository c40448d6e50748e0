//! A Markdown file with front matter: a page, or a letter.
#![no_main]

use libfuzzer_sys::fuzz_target;
use porchlight::domain::letters::Letter;
use porchlight::domain::text::FrontMatter;
use porchlight_fuzz::planted_panic;

fuzz_target!(|text: &str| {
    let split = FrontMatter::split(text);
    let mut titled = false;
    if let Ok((Some(front_matter), body)) = &split {
        assert!(body.len() < text.len());
        let lines = text.lines().count();
        assert!(front_matter.fields().count() < lines);
        assert!(front_matter.invalid_line.is_none_or(|line| (2..lines).contains(&line)));
        titled = front_matter.get("title").is_some();
    }
    let _ = Letter::parse(text);
    planted_panic(titled, text.as_bytes());
});
