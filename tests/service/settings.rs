//! Settings from flags, environment and file.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::harness::{Program, raw};

pub(super) const NAMES: [&str; 39] = [
    "backup_url",
    "backup_recipient",
    "acme_email",
    "acme_directory",
    "acme_ca_file",
    "tls_cert",
    "tls_key",
    "redirect_listen",
    "also_hosts",
    "postal_address",
    "letter_rate",
    "letters_archive",
    "listen",
    "base_url",
    "data_dir",
    "releases_dir",
    "releases_url",
    "database_url",
    "download_url",
    "site_dir",
    "allowed_origins",
    "ops_listen",
    "ops_token",
    "desk",
    "desk_email",
    "ai_train",
    "hsts_subdomains",
    "smtp_url",
    "mail_from",
    "contact_to",
    "confirm_updates",
    "bounce_address",
    "dkim_selector",
    "dkim_key",
    "keep_messages",
    "log_format",
    "client_ip_header",
    "trusted_proxies",
    "client_limits",
];
/// Part of the last line that `serve` prints at the start.
const STARTED: &str = "not mailed to anybody";

fn environment_name(setting: &str) -> String {
    format!("PORCHLIGHT_{}", setting.to_uppercase())
}

fn flag(setting: &str) -> String {
    format!("--{}", setting.replace('_', "-"))
}

fn serve(folder: &Path) -> Command {
    Program::command(folder, &["serve", "--listen", "127.0.0.1:0"])
}

/// Returns the `base_url` that a running service uses.
async fn base_url(program: &Program) -> String {
    let robots = raw(program.address(), "GET /robots.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    let sitemap = robots.lines().find_map(|line| line.strip_prefix("Sitemap: ")).expect("a sitemap");
    sitemap.strip_suffix("/sitemap.xml").expect("its address").to_owned()
}

/// Runs a command that rejects its settings and returns the message.
#[track_caller]
fn refusal(command: Command) -> String {
    let (code, output) = Program::run(command);
    assert_eq!(code, 2, "{output}");
    assert_eq!(output.trim_end().lines().count(), 1, "{output}");
    output
}

#[test]
fn help_lists_every_setting_as_flag_and_variable() {
    let folder = tempfile::tempdir().expect("a folder");
    for arguments in [&["--help"][..], &["serve", "--help"]] {
        let (code, output) = Program::run(Program::command(folder.path(), arguments));
        assert_eq!(code, 0);
        for setting in NAMES.into_iter().chain(["config"]) {
            assert!(output.contains(&format!("{} <", flag(setting))), "{setting}: {output}");
            assert!(output.contains(&environment_name(setting)), "{setting}: {output}");
        }
        assert!(output.contains("porchlight.toml"));
    }
    let (_, output) = Program::run(Program::command(folder.path(), &["--help"]));
    for secret in ["DATABASE_URL", "OPS_TOKEN", "SMTP_URL"] {
        assert!(output.contains(&format!("PORCHLIGHT_{secret}_FILE")), "{output}");
    }
}

#[tokio::test]
async fn a_flag_overrides_the_environment_which_overrides_the_file_which_overrides_the_default() {
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
        let program = Program::start(command, STARTED);
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
        assert_eq!(base_url(&Program::start(command, STARTED)).await, "https://other.example");
    }
    let mut missing = serve(folder.path());
    missing.args(["--config", "missing.toml"]);
    assert!(refusal(missing).contains("missing.toml"));
}

#[test]
fn an_invalid_value_prevents_the_start_and_the_message_names_the_setting() {
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
        ("log_format", "xml"),
        ("ops_listen", "8081"),
        ("ops_token", "short"),
        ("smtp_url", "mail.example"),
        ("smtp_url", "https://mail.example"),
        ("smtp_url", "smtps://user@mail.example"),
        ("smtp_url", "smtp://user:password@mail.example?tls=off"),
        ("mail_from", "Troupe"),
        ("contact_to", "makers@troupe.example, others@troupe.example"),
        ("client_ip_header", "x-forwarded-for"),
        ("trusted_proxies", "10.0.0.0/8"),
        ("trusted_proxies", "proxy.example"),
        ("client_limits", "some"),
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
fn sending_mail_requires_a_sender_and_a_recipient() {
    let folder = tempfile::tempdir().expect("a folder");
    for (given, missing) in [("--mail-from", "contact_to"), ("--contact-to", "mail_from")] {
        let mut command = serve(folder.path());
        command.args(["--smtp-url", "smtp://localhost", given, "makers@troupe.example"]);
        let output = refusal(command);
        assert!(output.contains(&format!("`{missing}`")) && output.contains("`smtp_url`"), "{output}");
    }
}

#[test]
fn the_header_that_names_the_client_and_the_proxies_that_are_believed_need_each_other() {
    let folder = tempfile::tempdir().expect("a folder");
    for given in [["--client-ip-header", "forwarded"], ["--trusted-proxies", "10.0.0.0/8, ::1"]] {
        let mut command = serve(folder.path());
        command.args(given);
        let output = refusal(command);
        assert!(output.contains("`client_ip_header`") && output.contains("`trusted_proxies`"), "{output}");
    }
}

#[test]
fn an_invalid_settings_file_prevents_the_start() {
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
        let output = refusal(Program::command(folder.path(), &["serve"]));
        assert!(output.contains(says) && !output.contains("hunter2"), "{text}: {output}");
    }
}

#[test]
fn unknown_flags_and_commands_are_usage_errors() {
    let folder = tempfile::tempdir().expect("a folder");
    for arguments in [&[][..], &["sevre"], &["serve", "--base-ulr", "https://troupe.example"]] {
        let (code, output) = Program::run(Program::command(folder.path(), arguments));
        assert_eq!(code, 2, "{output}");
        assert!(output.contains("Usage: porchlight"), "{output}");
    }
}

#[test]
fn the_usage_of_a_command_does_not_list_what_the_environment_gives() {
    let folder = tempfile::tempdir().expect("a folder");
    for (arguments, missing) in [
        (&["letter", "recipients"][..], "<LETTER>"),
        (&["release", "withdraw", "--yes"], "<VERSION>"),
        (&["letter", "test", "--base-url", "http://127.0.0.1:1"], "<FILE>"),
    ] {
        let mut command = Program::command(folder.path(), arguments);
        command.env("PORCHLIGHT_CONFIG", "nowhere.toml").env("PORCHLIGHT_DATA_DIR", "data");
        command.env("PORCHLIGHT_SMTP_URL", "smtp://127.0.0.1");
        let (code, output) = Program::run(command);
        assert!(code == 2 && output.contains("Usage: porchlight") && output.contains(missing), "{output}");
        assert!(
            !output.contains("--config") && !output.contains("--data-dir") && !output.contains("--smtp"),
            "{output}"
        );
        assert_eq!(output.contains("--base-url"), arguments.contains(&"--base-url"), "what was typed: {output}");
    }
}

#[test]
fn a_secret_can_be_read_from_a_separate_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = folder.path().join("elsewhere.db");
    std::fs::write(folder.path().join("secret"), format!("sqlite:{}\n", database.display())).expect("a file");
    let with_file = |name: &str| {
        let mut command = serve(folder.path());
        command.env("PORCHLIGHT_DATABASE_URL_FILE", name);
        command
    };
    let program = Program::start(with_file("secret"), STARTED);
    assert!(database.is_file(), "{}", program.output());

    let mut both = with_file("secret");
    both.env("PORCHLIGHT_DATABASE_URL", "sqlite:other.db");
    let output = refusal(both);
    assert!(output.contains("`database_url`") && output.contains("PORCHLIGHT_DATABASE_URL_FILE"), "{output}");
    let mut both = with_file("secret");
    both.args(["--database-url", "sqlite:other.db"]);
    assert!(refusal(both).contains("`database_url`"));

    let output = refusal(with_file("missing"));
    assert!(output.contains("`database_url`") && output.contains("missing"), "{output}");

    std::fs::write(folder.path().join("mail"), "smtps://maker:hunter2@mail.example\n").expect("a file");
    let mut command = serve(folder.path());
    command.env("PORCHLIGHT_SMTP_URL_FILE", "mail");
    command.args(["--mail-from", "hello@troupe.example", "--contact-to", "makers@troupe.example"]);
    let program = Program::start(command, "mail_server=mail.example:465");
    assert!(!program.output().contains("hunter2") && !program.output().contains(STARTED), "{}", program.output());
}

#[test]
fn secrets_are_never_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    let unreachable = "postgres://maker:hunter2@127.0.0.1:1/site";
    let mut help = Program::command(folder.path(), &["--help"]);
    help.env("PORCHLIGHT_DATABASE_URL", unreachable).env("PORCHLIGHT_SMTP_URL", "smtps://maker:hunter2@mail.example");
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
        let output = refusal(command);
        assert!(output.contains(&format!("`{setting}`")) && !output.contains("hunter2"), "{output}");
    }

    let mut command = serve(folder.path());
    command.env("PORCHLIGHT_DATABASE_URL", unreachable);
    let program = Program::start(command, STARTED);
    assert!(program.output().contains("127.0.0.1"), "{}", program.output());
    program.signal(Signal::TERM);
    let (status, output) = program.end();
    assert_eq!(status.code(), Some(0), "{output}");
    assert!(!output.contains("hunter2"), "{output}");
}

/// Sets the mode of a file or folder.
fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
}

#[test]
fn a_secret_that_others_can_read_is_pointed_out_at_the_start_and_by_check() {
    const TOKEN: &str = "hunter2-hunter2-hunter2";
    let on_command_line = "`ps` shows it to every user of this machine";
    let in_file = "Every user of this machine can read the secret `ops_token` in";
    let folder = tempfile::tempdir().expect("a folder");
    let (secret, config) = (folder.path().join("secret"), folder.path().join("own.toml"));
    std::fs::write(&secret, TOKEN).expect("a file");
    std::fs::write(&config, format!("ops_token = '{TOKEN}'")).expect("a file");
    let (by_flag, by_config) = (&["--ops-token", TOKEN][..], &["--config", "own.toml"][..]);
    let (by_variable, by_file) = (Some(("PORCHLIGHT_OPS_TOKEN", TOKEN)), Some(("PORCHLIGHT_OPS_TOKEN_FILE", "secret")));
    for (arguments, variable, folder_mode, file_mode, warning) in [
        (by_flag, None, 0o755, 0o600, on_command_line),
        (&[], by_variable, 0o755, 0o644, ""),
        (&[], by_file, 0o755, 0o644, in_file),
        (&[], by_file, 0o755, 0o640, ""),
        (&[], by_file, 0o700, 0o644, ""),
        (by_config, None, 0o755, 0o644, in_file),
        (by_config, None, 0o755, 0o600, ""),
    ] {
        chmod(folder.path(), folder_mode);
        chmod(&secret, file_mode);
        chmod(&config, file_mode);
        let (mut start, mut check) = (serve(folder.path()), Program::command(folder.path(), &["check"]));
        for command in [&mut start, &mut check] {
            command.args(arguments).envs(variable);
        }
        let program = Program::start(start, STARTED);
        for output in [program.output(), &Program::run(check).1] {
            assert_eq!(output.contains(on_command_line), warning == on_command_line, "{output}");
            assert_eq!(output.contains(in_file), warning == in_file, "{output}");
            assert!(!output.contains("hunter2"), "{output}");
        }
    }
    let mut without_password = Program::command(folder.path(), &["check", "--database-url", "sqlite:x.db"]);
    without_password.args([
        "--smtp-url",
        "smtp://127.0.0.1:1",
        "--mail-from",
        "a@b.example",
        "--contact-to",
        "a@b.example",
    ]);
    assert!(!Program::run(without_password).1.contains("secret"));
}

#[tokio::test]
async fn the_file_may_use_booleans() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("porchlight.toml"), "ai_train = true").expect("a file");
    let program = Program::start(serve(folder.path()), STARTED);
    let robots = raw(program.address(), "GET /robots.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(robots.contains("ai-train=yes"), "{robots}");
}

#[test]
fn an_unknown_setting_is_named_with_its_line_and_the_nearest_name() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("porchlight.toml"), "# mine\nlisten = '127.0.0.1:0'\nbase_ulr = 'x'\n")
        .expect("a file");
    let output = refusal(Program::command(folder.path(), &["serve"]));
    assert!(output.contains("unknown setting `base_ulr` in line 3. Did you mean `base_url`?"), "{output}");
}

#[test]
fn a_variable_that_is_no_setting_is_pointed_out_with_the_nearest_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let warning = "The variable PORCHLIGHT_BSE_URL in the environment is not a setting, and is ignored. Did you mean \
                   `PORCHLIGHT_BASE_URL`?";
    let token = folder.path().join("token");
    std::fs::write(&token, "0123456789abcdef").expect("a file");
    let with_variable = |arguments: &[&str]| {
        let mut command = Program::command(folder.path(), arguments);
        command.env("PORCHLIGHT_BSE_URL", "https://troupe.example").env("PORCHLIGHT_OPS_TOKEN_FILE", &token);
        command
    };
    let (_, output) = Program::run(with_variable(&["check"]));
    assert!(output.contains(warning) && !output.contains("PORCHLIGHT_OPS_TOKEN_FILE in the environment"), "{output}");
    let serve = with_variable(&["serve", "--listen", "127.0.0.1:0", "--ops-listen", "off"]);
    let program = Program::start(serve, "not mailed to anybody");
    assert!(program.output().contains(warning), "{}", program.output());
}
