//! `porchlight config`, `completions`, `man` and help.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::harness::Program;
use crate::settings::NAMES;

fn stdout(mut command: Command) -> String {
    let output = Program::run_to_end(&mut command);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn run(folder: &Path, arguments: &[&str]) -> String {
    stdout(Program::command(folder, arguments))
}

/// Returns the value and origin of each setting by name.
fn shown(command: Command) -> BTreeMap<String, (String, String)> {
    let all: Value = serde_json::from_str(&stdout(command)).expect("JSON");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let value = |value: &Value| if value.is_null() { "null".to_owned() } else { text(value) };
    let entry = |setting: &Value| (text(&setting["name"]), (value(&setting["value"]), text(&setting["from"])));
    all.as_array().expect("a list").iter().map(entry).collect()
}

#[test]
fn the_example_file_has_every_setting_once_with_its_default() {
    let folder = tempfile::tempdir().expect("a folder");
    let example = run(folder.path(), &["config", "example"]);
    assert!(example.lines().all(|line| line.is_empty() || line.starts_with('#')), "{example}");
    let lines: Vec<_> = example.lines().filter_map(|line| line.strip_prefix("# ")?.split_once(" = ")).collect();
    let mut names: Vec<_> = lines.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    let mut known = NAMES;
    known.sort_unstable();
    assert_eq!(names, known);

    // Uncommenting a line with a default changes nothing.
    std::fs::write(folder.path().join("porchlight.toml"), &example).expect("a file");
    let before = shown(Program::command(folder.path(), &["config", "show", "--json"]));
    let defaults: Vec<_> = lines
        .iter()
        .filter(|(name, value)| before[*name].0 == value.trim_matches('"'))
        .map(|(name, value)| format!("{name} = {value}\n"))
        .collect();
    assert!(defaults.len() >= 5, "{defaults:?}");
    std::fs::write(folder.path().join("porchlight.toml"), defaults.concat()).expect("a file");
    let after = shown(Program::command(folder.path(), &["config", "show", "--json"]));
    assert!(before.iter().all(|(name, (value, _))| after[name].0 == *value), "{after:#?}");
    assert_eq!(after["listen"].1, "porchlight.toml");
}

#[test]
fn current_settings_are_shown_with_their_origin_and_without_secrets() {
    let folder = tempfile::tempdir().expect("a folder");
    let file =
        "base_url = 'https://file.example'\nai_train = 'yes'\nletter_rate = 3\nops_token = 'hunter2-hunter2-hunter2'";
    std::fs::write(folder.path().join("porchlight.toml"), file).expect("a file");
    std::fs::write(folder.path().join("secret"), "smtps://me:hunter2@mail.example").expect("a file");
    let show = |arguments: &[&str]| {
        let mut command = Program::command(folder.path(), &[&["config", "show"], arguments].concat());
        command.args(["--mail-from", "a@troupe.example", "--contact-to", "b@troupe.example"]);
        command.env("PORCHLIGHT_BASE_URL", "https://env.example").env("PORCHLIGHT_AI_TRAIN", "no");
        command.env("PORCHLIGHT_SMTP_URL_FILE", "secret");
        command.env("PORCHLIGHT_DATABASE_URL", "postgres://me:hunter2@db.example/porchlight");
        command
    };
    let settings = shown(show(&["--json", "--ai-train", "yes"]));
    assert_eq!(settings.len(), NAMES.len());
    for (name, value, place) in [
        ("base_url", "https://env.example", "PORCHLIGHT_BASE_URL"),
        ("ai_train", "yes", "--ai-train"),
        ("letter_rate", "3", "porchlight.toml"),
        ("listen", "127.0.0.1:8080", "default"),
        ("ops_token", "(not shown)", "porchlight.toml"),
        ("smtp_url", "smtps://me:***@mail.example", "PORCHLIGHT_SMTP_URL_FILE"),
        ("database_url", "postgres://me:***@db.example/porchlight", "PORCHLIGHT_DATABASE_URL"),
        ("download_url", "null", "default"),
        ("mail_from", "a@troupe.example", "--mail-from"),
    ] {
        assert_eq!(settings[name], (value.to_owned(), place.to_owned()), "{name}");
    }
    assert!(!stdout(show(&[])).contains("hunter2"));

    let other = tempfile::tempdir().expect("a folder");
    let settings = shown(Program::command(other.path(), &["config", "show", "--json", "--data-dir", "/srv/data"]));
    for (name, value) in [
        ("database_url", "sqlite:/srv/data/porchlight.db"),
        ("releases_dir", "/srv/data/releases"),
        ("base_url", "http://127.0.0.1:8080"),
        ("smtp_url", "null"),
        ("ops_token", "null"),
        ("letter_rate", "10"),
    ] {
        assert_eq!(settings[name], (value.to_owned(), "default".to_owned()), "{name}");
    }

    let (code, output) = Program::run(show(&["--listen", "here"]));
    assert_eq!(code, 2, "{output}");
    assert!(output.contains("here  (--listen)") && output.contains("The setting `listen` cannot be used"), "{output}");
}

#[test]
fn completions_and_manual_cover_every_command_and_no_value_from_the_environment() {
    let folder = tempfile::tempdir().expect("a folder");
    let with_secret = |arguments: &[&str]| {
        let mut command = Program::command(folder.path(), arguments);
        command.env("PORCHLIGHT_SMTP_URL", "hunter2").env("PORCHLIGHT_LISTEN", "hunter2");
        let output = stdout(command);
        assert!(!output.contains("hunter2"), "{output}");
        output
    };
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = with_secret(&["completions", shell]);
        for word in ["serve", "withdraw", "base-url"] {
            assert!(script.contains(word), "{shell} {word}");
        }
    }
    let script = folder.path().join("completions.bash");
    std::fs::write(&script, with_secret(&["completions", "bash"])).expect("a file");
    let syntax = Program::run_to_end(Command::new("bash").arg("-n").arg(&script)).status;
    assert!(syntax.success());

    let page = with_secret(&["man"]);
    assert!(page.contains(".TH porchlight") && page.contains("PORCHLIGHT_BASE_URL"), "{page}");
    with_secret(&["man", "--to", "pages"]);
    for command in ["serve", "check", "backup", "move", "release-publish", "letter-send", "config-example"] {
        let page = std::fs::read_to_string(folder.path().join(format!("pages/porchlight-{command}.1")));
        let page = page.expect("a page");
        assert!(page.contains(".TH porchlight"), "{command}");
        let example = format!("porchlight {}", command.replace('-', " "));
        let (_, examples) = page.split_once(".SH EXAMPLES").expect("examples");
        assert!(examples.split(".SH").next().expect("a section").contains(&example), "{command}: {examples}");
    }
    let (code, output) = Program::run(Program::command(folder.path(), &["completions", "abacus"]));
    assert_eq!(code, 2, "{output}");
}

#[test]
fn the_help_of_every_command_starts_with_an_example() {
    fn visit(folder: &Path, path: &[&str], seen: &mut usize) {
        let help = run(folder, &[path, &["--help"]].concat());
        let commands =
            help.split_once("Commands:\n").map(|(_, rest)| rest.split_once("\n\n").map_or(rest, |(list, _)| list));
        // Continuation lines are indented further.
        let names =
            commands.into_iter().flat_map(str::lines).filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
        let names: Vec<_> = names.filter(|name| !["", "help"].contains(name)).collect();
        *seen += 1;
        assert!(help.starts_with("Example"), "{path:?}: {help}");
        let short = run(folder, &[path, &["-h"]].concat());
        assert!(short.starts_with("Example") && short.contains("Use --help to list them"), "{path:?}: {short}");
        let settings = NAMES.iter().filter(|name| short.contains(&format!("--{} <", name.replace('_', "-"))));
        assert_eq!(settings.count(), 0, "{path:?}: {short}");
        for name in names {
            visit(folder, &[path, &[name]].concat(), seen);
        }
    }
    let (folder, mut seen) = (tempfile::tempdir().expect("a folder"), 0);
    visit(folder.path(), &[], &mut seen);
    assert!(seen > 25, "only {seen} commands were found");
}
