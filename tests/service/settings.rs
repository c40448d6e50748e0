//! Settings in their three dresses, as a maker writes them.

use std::path::Path;
use std::process::Command;

use crate::harness::{Program, raw};

pub(super) const NAMES: [&str; 16] = [
    "postal_address",
    "letter_rate",
    "listen",
    "base_url",
    "data_dir",
    "releases_dir",
    "database_url",
    "download_url",
    "site_dir",
    "allowed_origins",
    "ops_listen",
    "ops_token",
    "ai_train",
    "smtp_url",
    "mail_from",
    "contact_to",
];
const UP: &str = "not mailed to anybody";

fn environment_name(setting: &str) -> String {
    format!("PORCHLIGHT_{}", setting.to_uppercase())
}

fn flag(setting: &str) -> String {
    format!("--{}", setting.replace('_', "-"))
}

fn serve(folder: &Path) -> Command {
    Program::command(folder, &["serve", "--listen", "127.0.0.1:0"])
}

/// The public address by which a started program goes.
async fn base_url(program: &Program) -> String {
    let robots = raw(program.address(), "GET /robots.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    let sitemap = robots.lines().find_map(|line| line.strip_prefix("Sitemap: ")).expect("a sitemap");
    sitemap.strip_suffix("/sitemap.xml").expect("its address").to_owned()
}

/// Runs a start that is refused for its settings; gives the sentence.
#[track_caller]
fn refusal(command: Command) -> String {
    let (code, said) = Program::run(command);
    assert_eq!(code, 2, "{said}");
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    said
}

#[test]
fn help_names_every_setting_in_each_dress() {
    let folder = tempfile::tempdir().expect("a folder");
    for arguments in [&["--help"][..], &["serve", "--help"]] {
        let (code, said) = Program::run(Program::command(folder.path(), arguments));
        assert_eq!(code, 0);
        for setting in NAMES.into_iter().chain(["config"]) {
            assert!(said.contains(&format!("{} <", flag(setting))), "{setting}: {said}");
            assert!(said.contains(&environment_name(setting)), "{setting}: {said}");
        }
        assert!(said.contains("porchlight.toml"));
    }
    let (_, said) = Program::run(Program::command(folder.path(), &["--help"]));
    for secret in ["DATABASE_URL", "OPS_TOKEN", "SMTP_URL"] {
        assert!(said.contains(&format!("PORCHLIGHT_{secret}_FILE")), "{said}");
    }
}

#[tokio::test]
async fn a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default() {
    for (file, environment, flag, expected) in [
        (None, None, None, None),
        (Some("https://file.example"), None, None, Some("https://file.example")),
        (Some("https://file.example"), Some("https://env.example"), None, Some("https://env.example")),
        (None, Some("https://env.example"), Some("https://flag.example"), Some("https://flag.example")),
        (Some("https://file.example"), None, Some("https://flag.example"), Some("https://flag.example")),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        if let Some(url) = file {
            std::fs::write(folder.path().join("porchlight.toml"), format!("base_url = '{url}'")).expect("a file");
        }
        let mut command = serve(folder.path());
        command.envs(environment.map(|url| ("PORCHLIGHT_BASE_URL", url)));
        command.args(flag.iter().flat_map(|url| ["--base-url", url]));
        let program = Program::start(command, UP);
        let default = format!("http://{}", program.address());
        assert_eq!(base_url(&program).await, expected.unwrap_or(&default));
    }
}

#[tokio::test]
async fn the_file_may_be_named_by_flag_or_environment() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("porchlight.toml"), "base_url = 'https://default.example'").expect("a file");
    std::fs::write(folder.path().join("other.toml"), "base_url = 'https://other.example'").expect("a file");
    let mut by_flag = serve(folder.path());
    by_flag.args(["--config", "other.toml"]);
    let mut by_environment = serve(folder.path());
    by_environment.env("PORCHLIGHT_CONFIG", "other.toml");
    for command in [by_flag, by_environment] {
        assert_eq!(base_url(&Program::start(command, UP)).await, "https://other.example");
    }
    let mut missing = serve(folder.path());
    missing.args(["--config", "missing.toml"]);
    assert!(refusal(missing).contains("missing.toml"));
}

#[test]
fn a_bad_value_in_any_dress_stops_the_start_and_names_the_setting() {
    for (setting, value) in [
        ("listen", "here"),
        ("listen", "127.0.0.1"),
        ("base_url", "troupe.example"),
        ("base_url", "https://troupe.example/path"),
        ("base_url", "ftp://troupe.example"),
        ("database_url", "mysql://localhost/porchlight"),
        ("download_url", "latest.dmg"),
        ("allowed_origins", "https://a.example, b.example"),
        ("ai_train", "perhaps"),
        ("ops_listen", "8081"),
        ("ops_token", "short"),
        ("smtp_url", "mail.example"),
        ("smtp_url", "https://mail.example"),
        ("smtp_url", "smtps://user@mail.example"),
        ("mail_from", "Troupe"),
        ("contact_to", "makers@troupe.example, others@troupe.example"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let without_listen = || Program::command(folder.path(), &["serve"]);
        let mut by_flag = without_listen();
        by_flag.args([flag(setting), value.to_owned()]);
        let mut by_environment = without_listen();
        by_environment.env(environment_name(setting), value);
        for command in [by_flag, by_environment] {
            assert!(refusal(command).contains(&format!("`{setting}`")), "{setting}");
        }
        std::fs::write(folder.path().join("porchlight.toml"), format!("{setting} = '{value}'")).expect("a file");
        assert!(refusal(without_listen()).contains(&format!("`{setting}`")), "{setting}");
    }
}

#[test]
fn sending_mail_takes_a_sender_and_a_recipient() {
    let folder = tempfile::tempdir().expect("a folder");
    for (given, missing) in [("--mail-from", "contact_to"), ("--contact-to", "mail_from")] {
        let mut command = serve(folder.path());
        command.args(["--smtp-url", "smtp://localhost", given, "makers@troupe.example"]);
        let said = refusal(command);
        assert!(said.contains(&format!("`{missing}`")) && said.contains("`smtp_url`"), "{said}");
    }
}

#[test]
fn a_file_that_cannot_be_understood_stops_the_start() {
    for (text, says) in [
        ("base_ulr = 'https://troupe.example'", "`base_ulr`"),
        ("[server]\nlisten = '127.0.0.1:0'", "`server`"),
        ("listen = { port = 1 }", "`listen`"),
        ("listen", "porchlight.toml is not TOML: line 1"),
        ("# one\nlisten = '127.0.0.1:0'\nlisten = '127.0.0.1:1'", "line 3 sets `listen` again"),
        ("listen = '127.0.0.1:0'\n\nsmtp_url = 'smtp://hunter2", "line 3"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("porchlight.toml"), text).expect("a file");
        let said = refusal(Program::command(folder.path(), &["serve"]));
        assert!(said.contains(says) && !said.contains("hunter2"), "{text}: {said}");
    }
}

#[test]
fn unknown_flags_and_commands_are_used_wrongly() {
    let folder = tempfile::tempdir().expect("a folder");
    for arguments in [&[][..], &["sevre"], &["serve", "--base-ulr", "https://troupe.example"]] {
        let (code, said) = Program::run(Program::command(folder.path(), arguments));
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("Usage: porchlight"), "{said}");
    }
}

#[test]
fn a_secret_may_stand_in_a_file_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = folder.path().join("elsewhere.db");
    std::fs::write(folder.path().join("secret"), format!("sqlite:{}\n", database.display())).expect("a file");
    let with_file = |name: &str| {
        let mut command = serve(folder.path());
        command.env("PORCHLIGHT_DATABASE_URL_FILE", name);
        command
    };
    let program = Program::start(with_file("secret"), UP);
    assert!(database.is_file(), "{}", program.said());

    let mut both = with_file("secret");
    both.env("PORCHLIGHT_DATABASE_URL", "sqlite:other.db");
    let said = refusal(both);
    assert!(said.contains("`database_url`") && said.contains("PORCHLIGHT_DATABASE_URL_FILE"), "{said}");
    let mut both = with_file("secret");
    both.args(["--database-url", "sqlite:other.db"]);
    assert!(refusal(both).contains("`database_url`"));

    let said = refusal(with_file("missing"));
    assert!(said.contains("`database_url`") && said.contains("missing"), "{said}");

    std::fs::write(folder.path().join("mail"), "smtps://maker:hunter2@mail.example\n").expect("a file");
    let mut command = serve(folder.path());
    command.env("PORCHLIGHT_SMTP_URL_FILE", "mail");
    command.args(["--mail-from", "hello@troupe.example", "--contact-to", "makers@troupe.example"]);
    let program = Program::start(command, "through mail.example:465");
    assert!(!program.said().contains("hunter2") && !program.said().contains(UP), "{}", program.said());
}

#[test]
fn secrets_are_never_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let away = "postgres://maker:hunter2@127.0.0.1:1/site";
    let mut help = Program::command(folder.path(), &["--help"]);
    help.env("PORCHLIGHT_DATABASE_URL", away).env("PORCHLIGHT_SMTP_URL", "smtps://maker:hunter2@mail.example");
    assert!(!Program::run(help).1.contains("hunter2"));

    for (setting, wrong) in [
        ("database_url", "mysql://maker:hunter2@localhost/site"),
        ("database_url", "postgres://maker:hunter2@[/site"),
        ("database_url", "hunter2"),
        ("smtp_url", "smtps://maker:hunter2@mail.example/path"),
        ("smtp_url", "smtps://maker:hunter2@[mail"),
        ("smtp_url", "hunter2"),
    ] {
        let mut command = serve(folder.path());
        command.args([flag(setting), wrong.to_owned()]);
        let said = refusal(command);
        assert!(said.contains(&format!("`{setting}`")) && !said.contains("hunter2"), "{said}");
    }

    let mut command = serve(folder.path());
    command.env("PORCHLIGHT_DATABASE_URL", away);
    let program = Program::start(command, UP);
    assert!(program.said().contains("127.0.0.1"), "{}", program.said());
    program.signal("TERM");
    let (status, said) = program.end();
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
}
