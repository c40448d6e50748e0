//! Checks that files which comments and documents name exist, and contain the item that is named with them.

#![expect(clippy::expect_used, reason = "this is how tests fail and say where")]

use std::path::{Path, PathBuf};

use fancy_regex::Regex;

/// A file that is named, such as `store/signups.rs`, and perhaps an item in it: "`Item` in `store/signups.rs`".
const POINTER: &str = r"(?:`([\w:]+)`(?:\(\))? (?:in|of) )?`((?:[\w-]+/)*[\w-]+\.rs)(?:::[\w:]+)?`";

fn files_below(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files_below(&path, extension, found);
        } else if path.extension().is_some_and(|of| of == extension) {
            found.push(path);
        }
    }
}

/// The comments of a source file, or the whole of a document, without line breaks.
fn prose(path: &Path) -> String {
    let text = std::fs::read_to_string(path).expect("UTF-8");
    let is_code = path.extension().is_some_and(|extension| extension == "rs");
    let lines = text.lines().map(str::trim).filter(|line| !is_code || line.starts_with("//"));
    lines.map(|line| line.trim_start_matches(['/', '!', ' '])).collect::<Vec<_>>().join(" ")
}

/// What is wrong with the pointers in a text.
fn wrong_pointers(text: &str, root: &Path) -> Vec<String> {
    let pattern = Regex::new(POINTER).expect("a pattern");
    let mut wrong = Vec::new();
    for pointer in pattern.captures_iter(text).map(|found| found.expect("a match")) {
        let file = &pointer[2];
        let target = ["", "src", "tests", "tests/service"].iter().map(|folder| root.join(folder).join(file));
        match target.into_iter().find(|path| path.is_file()) {
            None => wrong.push(format!("there is no `{file}`")),
            Some(path) => {
                let item = pointer.get(1).map(|item| item.as_str().rsplit("::").next().unwrap_or_default());
                let code = std::fs::read_to_string(path).expect("UTF-8");
                wrong.extend(item.filter(|item| !code.contains(item)).map(|item| format!("`{file}` has no `{item}`")));
            }
        }
    }
    wrong
}

#[test]
fn what_comments_and_documents_point_to_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> =
        ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"].map(|name| root.join(name)).into();
    files_below(&root.join("docs"), "md", &mut files);
    for folder in ["src", "tests", "bench"] {
        files_below(&root.join(folder), "rs", &mut files);
    }
    let pointers = Regex::new(POINTER).expect("a pattern");
    let mut count = 0;
    for file in files.iter().filter(|file| !file.ends_with("tests/pointers.rs")) {
        let text = prose(file);
        count += pointers.find_iter(&text).count();
        assert_eq!(wrong_pointers(&text, root), Vec::<String>::new(), "in {}", file.display());
    }
    assert!(count > 20, "only {count} pointers were found");
}

#[test]
fn a_wrong_pointer_is_found() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for text in ["see `store/nothing.rs`", "`Nothing` in `tests/layers.rs`", "`store::Nothing` of `src/lib.rs`"] {
        assert_eq!(wrong_pointers(text, root).len(), 1, "{text}");
    }
    assert!(wrong_pointers("`ORDERS` in `tests/layers.rs`, and `src/lib.rs`", root).is_empty());
}
