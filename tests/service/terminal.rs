//! Output of commands: streams, write errors, widths, confirmations and interruption.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use porchlight::config::RawSettings;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::harness::{Database, Program, Service, Terminal, disk_image, on_one_database, raw, wait_for, wait_until};
use crate::people::{command, data};

fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").expect("a full disk")
}

/// Returns a pipe whose reader is closed.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

/// Runs a command whose standard output goes where the caller set it; returns what is on standard error.
fn errors_of(command: &mut Command) -> (i32, String) {
    let output = Program::wait(command.stderr(Stdio::piped()).spawn().expect("the program"), "the end of a command");
    (output.status.code().expect("an exit code"), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn run(command: &mut Command) -> (i32, String) {
    errors_of(command.stdout(Stdio::null()))
}

fn exit_code(command: &mut Command, stderr: impl Into<Stdio>) -> i32 {
    let child = command.stdout(Stdio::null()).stderr(stderr).spawn().expect("the program");
    Program::wait(child, "the end of a command").status.code().expect("an exit code")
}

async fn add_person(service: &Service) {
    service.post("/api/download", &json!({ "email": "ada@example.com", "updates": true })).await.expect_ok();
    let message = json!({ "name": "Ada", "email": "ada@example.com", "message": "Hello there" });
    service.post("/api/contact", &message).await.expect_ok();
    service.publish("1.4.0");
}

/// Every command that prints data.
const PRINTING_COMMANDS: [&[&str]; 18] = [
    &["people", "show", "ada@example.com"],
    &["people", "show", "ada@example.com", "--json"],
    &["people", "list"],
    &["people", "list", "--json"],
    &["people", "export"],
    &["inbox", "list"],
    &["inbox", "list", "--json"],
    &["stats"],
    &["stats", "--json"],
    &["release", "list"],
    &["release", "show", "--json"],
    &["letter", "list", "--json"],
    &["config", "show"],
    &["config", "example"],
    &["completions", "zsh"],
    &["man"],
    &["check", "--releases-dir", "releases"],
    &["--help"],
];

#[tokio::test]
async fn output_that_cannot_be_written_is_a_failure_but_a_closed_pipe_is_not() {
    on_one_database(async |service| {
        add_person(service).await;
        for arguments in PRINTING_COMMANDS {
            let (code, errors) = errors_of(command(service, arguments).stdout(full()));
            assert!(code == 1 && errors.contains("o space left"), "{arguments:?}: {code}, {errors}");
            let (code, errors) = errors_of(command(service, arguments).stdout(closed()));
            assert_eq!((code, errors.as_str()), (0, ""), "{arguments:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_command_does_its_work_even_if_standard_error_cannot_be_written() {
    on_one_database(async |service| {
        add_person(service).await;
        for stderr in [full().into(), closed()] {
            assert_eq!(exit_code(&mut command(service, &["people", "suppress", "ada@example.com"]), stderr), 0);
            assert_eq!(exit_code(&mut command(service, &["people", "unsuppress", "ada@example.com"]), full()), 0);
        }
        assert_eq!(exit_code(&mut command(service, &["people", "show", "bob@example.com"]), full()), 1);
        assert_eq!(exit_code(&mut command(service, &["people", "shwo"]), closed()), 2);
    })
    .await;
}

#[tokio::test]
async fn an_export_is_private_and_replaces_the_file_atomically() {
    on_one_database(async |service| {
        add_person(service).await;
        let list = service.file("list.csv", "old");
        std::fs::set_permissions(&list, PermissionsExt::from_mode(0o644)).unwrap();
        let name = list.to_str().unwrap();
        let link = list.with_file_name("link.csv");
        std::os::unix::fs::symlink(&list, &link).unwrap();
        let files_in_folder = || std::fs::read_dir(list.parent().unwrap()).unwrap().count();
        let before = files_in_folder();
        // With a file size limit of 0, every write to a file fails.
        let mut limited = Command::new("sh");
        let export = command(service, &["people", "export", name]);
        limited.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"]);
        let (code, stderr) = run(limited.arg(export.get_program()).args(export.get_args()));
        assert_eq!((code, std::fs::read_to_string(&list).unwrap().as_str()), (1, "old"), "{stderr}");
        assert_eq!(files_in_folder(), before, "the temporary file is deleted");

        for path in [name, link.to_str().unwrap()] {
            std::fs::set_permissions(&list, PermissionsExt::from_mode(0o644)).unwrap();
            let (code, stderr) = run(&mut command(service, &["people", "export", path]));
            assert!(code == 0 && stderr.contains("1 person was exported to"), "{stderr}");
            assert!(std::fs::read_to_string(&list).unwrap().contains("\nada@example.com,"));
            assert_eq!(list.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            assert!(link.is_symlink());
        }
        assert_eq!(files_in_folder(), before);
        let (code, _) = run(&mut command(service, &["people", "export", "/dev/null"]));
        assert!(
            code == 0 && !std::fs::metadata("/dev/null").unwrap().is_file(),
            "a device is written to, not replaced"
        );
    })
    .await;
}

#[tokio::test]
async fn an_answer_other_than_yes_is_a_no_in_any_encoding() {
    let service = Service::start(RawSettings::default(), Database::migrated_sqlite().await).await;
    add_person(&service).await;
    let erase = || command(&service, &["people", "erase", "ada@example.com"]);
    for answer in ["\u{4}".as_bytes(), b"no\n", b"y\xe8s\n", b"\xff\n", b"\n"] {
        let (code, screen) = Terminal::new(80).run(erase(), answer);
        assert!(code == 0 && screen.contains("Nothing was erased."), "{answer:?}: {screen}");
    }
    let (code, screen) = Terminal::new(80).run(erase(), b"Yes\n");
    assert!(code == 0 && screen.contains("was erased"), "{screen}");
    service.stop().await;
}

#[tokio::test]
async fn tables_fit_the_terminal_and_are_complete_in_a_pipe() {
    on_one_database(async |service| {
        let long = format!("{}@{}.example.com", "a".repeat(60), "b".repeat(60));
        for (email, source) in [(long.as_str(), "漢字漢字漢字漢字漢字"), ("ada@example.com", "\u{202e}x")] {
            let order = json!({ "email": email, "updates": true, "source": source });
            service.post("/api/download", &order).await.expect_ok();
        }
        let message = json!({ "name": "漢", "email": &long, "message": "漢字かな交じり文".repeat(20) });
        service.post("/api/contact", &message).await.expect_ok();
        service.publish("1.4.0");
        service
            .database
            .execute(&format!(
                "INSERT INTO letters (id, subject, started_at) VALUES ('{}', '{}', 1794744000000)",
                "0".repeat(64),
                "漢字かな交じり文".repeat(9)
            ))
            .await;
        for columns in [20, 40, 72, 80, 132] {
            for list in
                [&["people", "list"][..], &["inbox", "list"], &["letter", "list"], &["release", "list"], &["stats"]]
            {
                let (code, screen) = Terminal::new(columns).run(command(service, list), b"");
                assert_eq!(code, 0, "{screen}");
                for line in screen.lines() {
                    let width = console::measure_text_width(line);
                    assert!(width <= columns.into(), "{list:?} takes {width} of {columns}: {line}");
                }
                assert!(!screen.contains('\u{202e}'), "{screen}");
            }
        }
        let (_, screen) = Terminal::new(80).run(command(service, &["people", "list"]), b"");
        assert!(screen.starts_with("first seen  "), "{screen}");
        let (_, narrow) = Terminal::new(40).run(command(service, &["people", "list"]), b"");
        assert!(narrow.contains("ada@example.com"), "{narrow}");
        let whole = data(service, &["people", "list"]);
        assert!(whole.contains(&long) && whole.contains(" 1 download ") && !whole.contains("first seen"), "{whole}");
    })
    .await;
}

/// Returns whether the process has a handler for SIGINT.
fn handles_interrupts(program: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", program.id())).expect("a program");
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("signals").trim();
    u64::from_str_radix(caught, 16).expect("a signal mask") & 2 != 0
}

/// Sends SIGINT to a command once it handles the signal and `once_started` has returned.
async fn run_and_interrupt(mut command: Command, once_started: impl FnOnce()) -> (i32, String) {
    let mut program = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program");
    wait_until("a handler for interrupts", async || {
        assert_eq!(program.try_wait().expect("a program"), None, "the command ended");
        handles_interrupts(&program)
    })
    .await;
    once_started();
    kill_process(Pid::from_child(&program), Signal::INT).expect("a process to signal");
    let output = Program::wait(program, "the end of an interrupted command");
    (output.status.code().expect("an exit code"), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[tokio::test]
async fn an_interrupted_command_says_what_was_done_and_how_to_continue() {
    let service = Service::start(RawSettings::default(), Database::migrated_postgres().await).await;
    add_person(&service).await;
    let lock = service.database.lock().await;
    let list = service.file("people.csv", "email\nbob@example.com\n");
    let (code, stderr) =
        run_and_interrupt(command(&service, &["people", "import", list.to_str().unwrap()]), || {}).await;
    assert!(code == 1 && stderr.contains("Run the command again"), "{stderr}");
    let folder = list.with_file_name("backup");
    let (code, stderr) = run_and_interrupt(command(&service, &["backup", folder.to_str().unwrap()]), || {}).await;
    assert!(code == 1 && stderr.contains("is incomplete"), "{stderr}");
    lock.release().await;

    // The copy goes to a pipe that is never read, so it blocks.
    let (partial, image) = (service.releases_dir().join(".partial"), service.file("large.dmg", disk_image(1 << 20, 9)));
    mknodat(CWD, &partial, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    let mut pipe = OpenOptions::new().read(true).write(true).open(&partial).unwrap();
    let publish = service.release_command(&["publish", image.to_str().unwrap(), "--version", "2.0.0"]);
    let copying = || pipe.read_exact(&mut [0]).expect("the start of the copy");
    let (code, stderr) = run_and_interrupt(publish, copying).await;
    assert!(code == 1 && stderr.contains("does not show the release, run the command again"), "{stderr}");
    assert!(!partial.exists(), "the partial copy is deleted");
    drop(pipe);
    service.stop().await;
}

/// Returns the port that a process listens on, from /proc.
fn listening_port(program: &Child) -> Option<u16> {
    let files = std::fs::read_dir(format!("/proc/{}/fd", program.id())).expect("a program");
    let sockets: Vec<_> = files.filter_map(|file| file.ok()?.path().read_link().ok()).collect();
    let table = std::fs::read_to_string("/proc/net/tcp").expect("sockets");
    table.lines().skip(1).find_map(|line| {
        let cells: Vec<_> = line.split_whitespace().collect();
        let is_ours = sockets.contains(&format!("socket:[{}]", cells[9]).into());
        (is_ours && cells[3] == "0A").then(|| u16::from_str_radix(cells[1].split_once(':')?.1, 16).ok())?
    })
}

#[tokio::test]
async fn the_service_keeps_running_if_its_log_cannot_be_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut serve = Program::command(folder.path(), &["serve", "--listen", "127.0.0.1:0", "--ops-listen", "off"]);
    let mut program = serve.stderr(full()).spawn().expect("the program");
    let port = wait_for("a listener", async || {
        assert_eq!(program.try_wait().expect("a program"), None, "it ended");
        listening_port(&program)
    })
    .await;
    for _ in 0..2 {
        let request = "GET /robots.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        let answer = raw(([127, 0, 0, 1], port).into(), request).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    kill_process(Pid::from_child(&program), Signal::TERM).expect("a process to signal");
    assert_eq!(Program::wait(program, "the end of the program").status.code(), Some(0));
}

#[test]
fn the_service_explains_at_a_terminal_why_it_does_not_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let (code, screen) = Terminal::new(80).run(Program::command(folder.path(), &["serve", "--listen", &address]), b"");
    assert_eq!(code, 1, "{screen}");
    assert!(screen.contains("failed to listen on") && !screen.contains('\u{1b}'), "{screen}");
}
