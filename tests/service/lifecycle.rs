//! The real program from its start to its end.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::harness::{Connection, Program, raw};

/// The last line that the program prints at its start.
const UP: &str = "not mailed to anybody";

fn serve(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Program::command(folder, &["serve", "--listen", "127.0.0.1:0"]);
    command.args(arguments);
    command
}

fn post(path: &str, body: &str, more: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{more}\r\n{body}"
    )
}

#[tokio::test]
async fn it_starts_in_an_empty_folder_without_any_settings() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = Program::start(serve(folder.path(), &[]), UP);
    let base_url = format!("http://{}", program.address());
    let data = folder.path().join("data");
    for word in [
        &format!("version={}", env!("CARGO_PKG_VERSION")),
        &base_url,
        &data.display().to_string(),
        "SQLite",
        "This is a local preview",
        "Downloads get a sample",
    ] {
        assert!(program.output().contains(word), "{word}: {}", program.output());
    }
    let mode = std::fs::metadata(&data).expect("the data folder").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert!(data.join("porchlight.db").is_file());

    let page = raw(program.address(), "GET /robots.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(page.contains(&format!("Sitemap: {base_url}/sitemap.xml")), "{page}");
    let joined =
        raw(program.address(), post("/api/waitlist", r#"{"email":"ada@example.com"}"#, "Connection: close\r\n"));
    assert!(joined.await.ends_with(r#"{"ok":true,"already":false}"#));
}

#[tokio::test]
async fn what_was_stored_is_there_after_the_next_start() {
    let folder = tempfile::tempdir().expect("a folder");
    for already in [false, true] {
        let program = Program::start(serve(folder.path(), &[]), UP);
        let request = post("/api/waitlist", r#"{"email":"ada@example.com"}"#, "Connection: close\r\n");
        let answer = raw(program.address(), request).await;
        assert!(answer.ends_with(&format!(r#"{{"ok":true,"already":{already}}}"#)), "{answer}");
        program.signal(Signal::TERM);
        assert_eq!(program.end().0.code(), Some(0));
    }
}

#[test]
fn a_second_service_on_the_same_database_starts_when_the_first_has_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = Program::start(serve(folder.path(), &[]), UP);
    let mut second = Program::start(serve(folder.path(), &[]), "another service uses the database");
    let (code, output) = Program::run(Program::command(folder.path(), &["stats"]));
    assert_eq!(code, 0, "a command needs no lock: {output}");
    first.signal(Signal::TERM);
    assert_eq!(first.end().0.code(), Some(0));
    second.wait_for_output(UP);
}

#[test]
fn a_public_site_with_an_empty_database_is_a_warning_of_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    for (base_url, warns) in [("http://localhost:8080", false), ("https://troupe.example", true)] {
        let program = Program::start(serve(folder.path(), &["--base-url", base_url]), UP);
        let warned =
            program.output().lines().any(|line| line.contains("warn") && line.contains("The database is empty"));
        assert_eq!(warned, warns, "{}", program.output());
        program.signal(Signal::TERM);
        program.end();
    }
}

#[test]
fn a_folder_that_others_can_write_to_is_pointed_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let chmod = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("a mode");
    chmod(folder.path(), 0o755);
    for name in ["data", "images"] {
        std::fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    for (data, images) in [(0o777, 0o755), (0o770, 0o777)] {
        chmod(&folder.path().join("data"), data);
        chmod(&folder.path().join("images"), images);
        let arguments = ["--releases-dir", "images"];
        let program = Program::start(serve(folder.path(), &arguments), UP);
        let (_, checked) = Program::run(Program::command(folder.path(), &[&["check"], &arguments[..]].concat()));
        for output in [program.output(), &checked] {
            for (setting, is_writable) in [("data_dir", data == 0o777), ("releases_dir", images == 0o777)] {
                let warning = format!("can add and replace files in the folder of `{setting}`. Run `chmod o-w ");
                assert_eq!(output.contains(&warning), is_writable, "{output}");
            }
        }
        program.signal(Signal::TERM);
        program.end();
    }
}

/// The kernel drops the pages that it could not write, and a second fsync succeeds. SQLite would take that for success, and
/// overwrite the WAL, which still has them.
#[tokio::test]
async fn it_ends_if_the_database_file_cannot_be_synced_and_goes_on_with_the_wal_at_the_next_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = folder.path().join("fsync_fails.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/trials/fsync_fails.c");
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, Path::new(source)]).status();
    assert!(compiled.expect("a C compiler").success());
    let mut command = serve(folder.path(), &[]);
    command.env("LD_PRELOAD", library).env("FSYNC_FAILS", folder.path());
    let program = Program::start(command, UP);
    std::fs::write(folder.path().join("porchlight.db"), [0]).expect("one call that fails");

    let join = post("/api/waitlist", r#"{"email":"ada@example.com"}"#, "Connection: close\r\n");
    assert!(raw(program.address(), &join).await.ends_with(r#"{"ok":true,"already":false}"#));
    let (status, output) = program.end();
    assert_eq!(status.code(), Some(1), "{output}");
    assert!(output.contains("the disk could not write the database file"), "{output}");
    let notes = std::fs::read_to_string(folder.path().join("notes")).expect("notes");
    assert_eq!(notes, "failed porchlight.db\n", "fsync is not called again");
    assert!(folder.path().join("data/porchlight.db-wal").metadata().expect("the WAL").len() > 0);

    let program = Program::start(serve(folder.path(), &[]), UP);
    assert!(raw(program.address(), &join).await.ends_with(r#"{"ok":true,"already":true}"#));
}

#[tokio::test]
async fn either_signal_ends_it_once_what_is_under_way_is_answered() {
    for signal in [Signal::TERM, Signal::INT] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut program = Program::start(serve(folder.path(), &[]), UP);
        let body = r#"{"email":"ada@example.com"}"#;
        let head = post("/api/waitlist", body, "Expect: 100-continue\r\n");
        let head = head.strip_suffix(body).expect("the head");

        let mut under_way = Connection::open(program.address()).await;
        under_way.send(head).await;
        under_way.read_until("100 Continue\r\n\r\n").await;
        under_way.send(&body[..10]).await;
        program.signal(signal);
        program.wait_for_output("stopping");
        under_way.send(&body[10..]).await;
        let answer = under_way.read_to_end().await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{signal:?}: {answer}");

        let (status, output) = program.end();
        assert_eq!(status.code(), Some(0), "{output}");
    }
}

#[tokio::test]
async fn a_connection_made_before_the_signal_is_answered_after_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut program = Program::start(serve(folder.path(), &[]), UP);
    let mut early = Vec::new();
    for _ in 0..8 {
        early.push(Connection::open(program.address()).await);
    }
    program.signal(Signal::TERM);
    program.wait_for_output("stopping");
    for connection in &mut early {
        connection.send("GET /robots.txt HTTP/1.1\r\nHost: x\r\n\r\n").await;
    }
    for connection in &mut early {
        let answer = connection.read_to_end().await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer:?}");
    }
    let (status, output) = program.end();
    assert_eq!(status.code(), Some(0), "{output}");
}

#[tokio::test]
async fn a_burst_of_connections_waits_until_the_service_has_time_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = Program::start(serve(folder.path(), &[]), UP);
    program.signal(Signal::STOP);
    let mut burst = Vec::new();
    for _ in 0..300 {
        // A kernel without room for it would let it wait for as long as the program is stopped.
        let open = tokio::time::timeout(Duration::from_secs(20), Connection::open(program.address()));
        burst.push(open.await.expect("room in the backlog"));
    }
    program.signal(Signal::CONT);
    for connection in &mut burst {
        connection.send("GET /robots.txt HTTP/1.1\r\nHost: x\r\n\r\n").await;
        connection.read_until("sitemap.xml\n").await;
    }
    program.signal(Signal::TERM);
    let (status, output) = program.end();
    assert_eq!(status.code(), Some(0), "{output}");
}

#[tokio::test]
async fn connections_that_idle_do_not_keep_it_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = Program::start(serve(folder.path(), &[]), UP);
    let mut idle = Connection::open(program.address()).await;
    idle.send("GET /robots.txt HTTP/1.1\r\nHost: x\r\n\r\n").await;
    idle.read_until("sitemap.xml\n").await;
    let silent = Connection::open(program.address()).await;
    program.signal(Signal::TERM);
    let (status, output) = program.end();
    assert_eq!(status.code(), Some(0), "{output}");
    assert_eq!(idle.read_to_end().await, "");
    drop(silent);
}

#[tokio::test]
async fn a_request_is_one_line_without_anything_a_person_sent() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = Program::start(serve(folder.path(), &[]), UP);
    let close = "Connection: close\r\n";
    let contact = r#"{"name":"Secretname","email":"secret@example.com","message":"secret message"}"#;
    let call = r#"{"jsonrpc":"2.0","id":"secret","method":"tools/call","params":{"name":"join_waitlist","arguments":{"email":"secret@example.com"}}}"#;
    let requests = [
        (post("/api/contact?secret=1", contact, close), "method=POST route=/api/contact status=200"),
        (post("/api/download", r#"{"email":"secret"}"#, close), "method=POST route=/api/download status=400"),
        (post("/api/secret", "{}", close), "method=POST route=/api/{*path} status=404"),
        (post("/mcp", call, close), "method=POST route=/mcp status=200"),
        (format!("GET /about?secret HTTP/1.1\r\nHost: secret\r\n{close}\r\n"), "method=GET route=/about status=200"),
        (
            format!("GET /unsubscribe/secret HTTP/1.1\r\nHost: x\r\n{close}\r\n"),
            "method=GET route=/unsubscribe/{token} status=404",
        ),
        (format!("GET /secret HTTP/1.1\r\nHost: x\r\n{close}\r\n"), "method=GET route=* status=404"),
        (format!("SECRET /about HTTP/1.1\r\nHost: x\r\n{close}\r\n"), "method=other route=/about status=405"),
    ];
    for (request, _) in &requests {
        raw(program.address(), request).await;
    }
    program.signal(Signal::TERM);
    let (_, output) = program.end();
    let lines: Vec<_> = output.lines().filter(|line| line.contains("status=")).collect();
    assert_eq!(lines.len(), requests.len(), "{output}");
    for ((_, expected), line) in requests.iter().zip(lines) {
        assert!(line.contains(expected), "{line}");
    }
    assert!(!output.to_lowercase().contains("secret"), "{output}");
}

#[test]
fn an_obstacle_to_the_start_is_reported_in_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().map(|address| (address.to_string(), taken)).expect("its address");
    std::fs::write(folder.path().join("file"), "not a folder").expect("a file");
    std::fs::create_dir(folder.path().join("garbled")).expect("a folder");
    std::fs::write(folder.path().join("garbled/porchlight.db"), "no database ".repeat(1000)).expect("a file");
    for (arguments, says) in [
        (["--listen", taken.0.as_str()], taken.0.as_str()),
        (["--data-dir", "file"], "file"),
        (["--data-dir", "file/data"], "file/data"),
        (["--data-dir", "garbled"], "garbled"),
    ] {
        let mut command = Program::command(folder.path(), &["serve"]);
        if arguments[0] != "--listen" {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        let (code, output) = Program::run({
            command.args(arguments).args(["--log-format", "text"]).env("RUST_BACKTRACE", "1");
            command
        });
        assert_eq!(code, 1, "{output}");
        assert_eq!(output.trim_end().lines().count(), 1, "{output}");
        assert!(output.contains(says) && output.trim_end().ends_with('.'), "{output}");
        assert!(!output.contains("panicked") && !output.contains("backtrace"), "{output}");
    }
}
