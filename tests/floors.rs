//! The floors of the house: each may use those below it, never those above, nor its neighbours.

#![expect(clippy::expect_used, clippy::panic, reason = "this is how tests fail and say where")]

use std::path::{Path, PathBuf};

use fancy_regex::Regex;

/// Rooms by floor, as `ARCHITECTURE.md` has them.
const FLOORS: [(&str, u8); 11] = [
    ("cli", 5),
    ("serve", 4),
    ("web", 3),
    ("actions", 2),
    ("store", 1),
    ("mail", 1),
    ("site", 1),
    ("probe", 1),
    ("domain", 0),
    ("config", 0),
    ("clock", 0),
];

/// Settings and the clock are made of words of the domain.
const WITHIN_A_FLOOR: [(&str, &str); 2] = [("config", "domain"), ("clock", "domain")];

fn floor(room: &str) -> u8 {
    let found = FLOORS.iter().find(|(name, _)| *name == room);
    found.unwrap_or_else(|| panic!("`{room}` stands on no floor: give it one")).1
}

/// Every file of the source with the room it belongs to, tests beneath it left out.
fn sources() -> Vec<(String, PathBuf, String)> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut waiting = vec![source.clone()];
    let mut sources = Vec::new();
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(std::fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()));
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let file = path.strip_prefix(&source).expect("a file of ours").to_owned();
            let room = file.iter().next().expect("a name").to_str().expect("UTF-8").trim_end_matches(".rs").to_owned();
            let text = std::fs::read_to_string(&path).expect("a text");
            let text = text.split("#[cfg(test)]").next().expect("a beginning").to_owned();
            if !["main", "lib"].contains(&room.as_str()) {
                sources.push((room, file, text));
            }
        }
    }
    assert!(sources.len() > 40, "the sources were not found");
    sources
}

/// The rooms that a text names after `crate::`, alone or as `crate::{…}`.
fn used_rooms(text: &str) -> Vec<String> {
    let pattern = Regex::new(r"\bcrate::(?:([a-z_]+)|\{([^}]*))").expect("a pattern");
    let mut rooms = Vec::new();
    for found in pattern.captures_iter(text) {
        let found = found.expect("a match");
        if let Some(room) = found.get(1) {
            rooms.push(room.as_str().to_owned());
        }
        let list = found.get(2).map_or("", |list| list.as_str());
        rooms.extend(list.split(',').filter_map(|item| item.trim().split("::").next()).map(str::to_owned));
    }
    rooms.retain(|room| !room.is_empty());
    rooms
}

fn may_use(room: &str, other: &str) -> bool {
    room == other || floor(other) < floor(room) || WITHIN_A_FLOOR.contains(&(room, other))
}

#[test]
fn no_room_uses_a_higher_floor_or_a_neighbour() {
    let mut arrows = 0;
    for (room, file, text) in sources() {
        for other in used_rooms(&text) {
            assert!(may_use(&room, &other), "{}: `{room}` uses `{other}`", file.display());
            arrows += usize::from(room != other);
        }
    }
    assert!(arrows > 40, "only {arrows} uses were found");
}

#[test]
fn upward_arrows_and_neighbours_would_be_found() {
    for (room, text) in [
        ("store", "use crate::actions::Failure;"),
        ("store", "fn f() { crate::site::Site::build() }"),
        ("domain", "use crate::{config::Settings, clock::Clock};"),
        ("web", "use crate::serve::{self, Running};"),
    ] {
        let used = used_rooms(text);
        assert!(!used.is_empty() && used.iter().any(|other| !may_use(room, other)), "{text}");
    }
    assert!(
        used_rooms("use crate::{\n    config::Settings,\n    domain::time::Timestamp,\n};") == ["config", "domain"]
    );
}

#[test]
fn only_the_store_speaks_sql() {
    let sql = Regex::new(r"(?i)\bsqlx\b|\b(?:SELECT\s.+\sFROM|INSERT\s+INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM)\b");
    let sql = sql.expect("a pattern");
    let mut speakers: Vec<_> = sources()
        .into_iter()
        .filter(|(_, _, text)| text.lines().any(|line| sql.is_match(line).expect("a match")))
        .map(|(room, ..)| room)
        .collect();
    speakers.sort();
    speakers.dedup();
    assert_eq!(speakers, ["store"]);
}

#[test]
fn only_the_settings_read_the_environment() {
    let environment = Regex::new(r"\benv::(?:var|vars|var_os|vars_os)\b|\bdotenv").expect("a pattern");
    let mut readers: Vec<_> = sources()
        .into_iter()
        .filter(|(_, _, text)| environment.is_match(text).expect("a match"))
        .map(|(_, file, _)| file)
        .collect();
    readers.dedup();
    assert_eq!(readers, [Path::new("config/gather.rs")]);
}
