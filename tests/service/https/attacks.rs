//! Known attacks on HTTP/2 servers: memory stays flat, and others are served meanwhile.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use super::wire::{
    CONTINUATION, Connection, DATA, END_HEADERS, END_STREAM, HEADERS, PING, RST_STREAM, SETTINGS, connect,
    connect_over, frame, header_block, header_block_for, preface, read_frame, request,
};
use super::{HOST, curl, https, identity};
use crate::harness::{
    Authority, PUBLIC_ADDRESSES, Program, connect_from, disk_image, in_network_namespace, on_one_database_with,
    wait_until,
};

/// By how much the memory of the process may grow under all attacks.
const MAX_GROWTH_KIB: u64 = 48 * 1024;
const ATTACKERS: u32 = 8;

/// Writes until everything is sent or the server has closed the connection. Reads what comes meanwhile, so that no attack ends
/// because nobody reads its answers.
fn send(mut connection: Connection, bytes: &[u8]) {
    let mut read = vec![0; 64 * 1024];
    for piece in bytes.chunks(16 * 1024) {
        if connection.write_all(piece).is_err() || connection.flush().is_err() {
            return;
        }
        connection.sock.set_nonblocking(true).expect("a socket");
        loop {
            match connection.read(&mut read) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return,
            }
        }
        connection.sock.set_nonblocking(false).expect("a socket");
    }
}

/// Each attack as the bytes of one connection.
fn attacks() -> Vec<(&'static str, Vec<u8>)> {
    let streams = |count: u32| (0..count).map(|number| number * 2 + 1);
    let begin = || preface(&[]);
    let literal = |name: usize, value: usize| {
        // A header without indexing, with a name and a value of one letter repeated; lengths below 127 are one byte.
        let mut header = vec![0x00, u8::try_from(name).expect("short")];
        header.extend(vec![b'x'; name]);
        header.push(u8::try_from(value).expect("short"));
        header.extend(vec![b'y'; value]);
        header
    };
    let rapid_reset = streams(20_000)
        .flat_map(|stream| [request(stream), frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())].concat())
        .collect::<Vec<_>>();
    let continuation = (0..5_000).flat_map(|_| frame(CONTINUATION, 0, 1, &literal(100, 100).repeat(20)));
    let header_bomb = [header_block(), literal(100, 100).repeat(400)].concat();
    let header_bombs = streams(200).flat_map(|stream| {
        let (first, rest) = header_bomb.split_at(16_000);
        let mut frames = frame(HEADERS, END_STREAM, stream, first);
        let mut pieces = rest.chunks(16_000).peekable();
        while let Some(piece) = pieces.next() {
            let flags = if pieces.peek().is_none() { END_HEADERS } else { 0 };
            frames.extend(frame(CONTINUATION, flags, stream, piece));
        }
        frames
    });
    let pings = (0..50_000_u64).flat_map(|number| frame(PING, 0, 0, &number.to_be_bytes()));
    let settings = (0..20_000_u32).flat_map(|_| frame(SETTINGS, 0, 0, &[0, 4, 0, 1, 0, 0]));
    let empty_data = [frame(HEADERS, END_HEADERS, 1, &header_block()), frame(DATA, 0, 1, &[]).repeat(50_000)].concat();
    vec![
        ("rapid reset", [begin(), rapid_reset].concat()),
        ("continuation flood", [begin(), frame(HEADERS, 0, 1, &header_block()), continuation.collect()].concat()),
        ("many streams", [begin(), streams(5_000).flat_map(request).collect()].concat()),
        ("header bombs", [begin(), header_bombs.collect()].concat()),
        ("pings", [begin(), pings.collect()].concat()),
        ("settings", [begin(), settings.collect()].concat()),
        ("empty data", [begin(), empty_data].concat()),
    ]
}

/// The resident memory of a process.
fn memory_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn serve(folder: &Path, certificate: &Path, key: &Path) -> Command {
    let mut command: Command = Program::command(folder, &["serve", "--listen", "127.0.0.1:0", "--ops-listen", "off"]);
    command.args(["--base-url", &format!("https://{HOST}"), "--log-format", "logfmt"]);
    command.arg("--tls-cert").arg(certificate).arg("--tls-key").arg(key);
    command
}

#[test]
fn attacks_over_http2_leave_memory_flat_and_others_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new();
    let identity = identity(&authority);
    let program =
        Program::start(serve(folder.path(), &identity.certificate(), &identity.key()), "Porchlight is serving");
    let address: SocketAddr = program.address();
    let served = || curl(address.port(), &authority.path(), &["--http2", "https://troupe.example/about"]).0 == 0;
    assert!(served());
    let before = memory_kib(program.id());
    for (name, bytes) in attacks() {
        std::thread::scope(|scope| {
            for _ in 0..ATTACKERS {
                scope.spawn(|| send(connect(address, &authority, "h2"), &bytes));
            }
            for _ in 0..3 {
                assert!(served(), "{name}");
            }
        });
        let growth = memory_kib(program.id()).saturating_sub(before);
        assert!(growth < MAX_GROWTH_KIB, "{name}: {growth} KiB more");
    }
    program.signal(rustix::process::Signal::TERM);
    let (status, log) = program.end();
    assert!(status.success() && !log.contains("panicked"), "{log}");
}

/// The disk images that a process has open.
fn open_images(pid: u32) -> usize {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("a process");
    let targets = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    targets.filter(|target| target.extension().is_some_and(|extension| extension == "dmg")).count()
}

/// A client that allows no byte of any response body, and asks for a path on each of 64 streams.
fn hold(mut connection: Connection, path: &str) -> Connection {
    let no_window = [0, 4, 0, 0, 0, 0];
    let streams = (0..64).map(|number| number * 2 + 1);
    let head = header_block_for(path);
    let requests = streams.flat_map(|stream| frame(HEADERS, END_STREAM | END_HEADERS, stream, &head));
    connection.write_all(&[preface(&no_window), requests.collect()].concat()).expect("to be sent");
    connection.flush().expect("to be sent");
    let mut answered = 0;
    while answered < 64 {
        answered += usize::from(read_frame(&mut connection) == HEADERS);
    }
    connection
}

#[tokio::test(flavor = "multi_thread")]
async fn images_that_nobody_takes_over_http2_leave_files_for_everybody_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new();
    let identity = identity(&authority);
    let image = folder.path().join("image.dmg");
    std::fs::write(&image, disk_image(20_000, 1)).expect("an image");
    let serve = serve(folder.path(), &identity.certificate(), &identity.key());
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 256 && exec \"$@\"", "sh"]).arg(serve.get_program()).args(serve.get_args());
    limited.current_dir(folder.path());
    let program = Program::start(limited, "Porchlight is serving");
    let publish = ["release", "publish", image.to_str().expect("UTF-8"), "--version", "1.4.0"];
    let (code, output) = Program::run(Program::command(folder.path(), &publish));
    assert_eq!(code, 0, "{output}");
    let port = program.address().port();
    let status = |url: &str| {
        let shown = ["--http2", "-o", "/dev/null", "-w", "%{http_code} %header{retry-after}"];
        curl(port, &authority.path(), &[&shown[..], &[&format!("https://{HOST}{url}")]].concat()).1
    };
    wait_until("the image", async || status("/releases/Troupe-1.4.0.dmg") == "200 ").await;

    let held: Vec<_> =
        (0..4).map(|_| hold(connect(program.address(), &authority, "h2"), "/releases/Troupe-1.4.0.dmg")).collect();
    // A third of the files that the process may open.
    assert_eq!(open_images(program.id()), 84);
    assert_eq!(status("/about"), "200 ");
    assert_eq!(status("/releases/Troupe-1.4.0.dmg"), "503 60");
    drop(held);
    wait_until("room for a download", async || status("/releases/Troupe-1.4.0.dmg") == "200 ").await;
    program.signal(rustix::process::Signal::TERM);
    let (_, log) = program.end();
    assert!(log.contains("reason=open_images") && !log.contains("failed to accept"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_256_requests_in_flight_the_answer_has_the_format_of_its_path() {
    if !in_network_namespace("https::attacks::beyond_256_requests_in_flight_the_answer_has_the_format_of_its_path")
        .await
    {
        return;
    }
    let authority = Authority::new();
    let identity = identity(&authority);
    on_one_database_with(https(&identity), async |service| {
        let [ada, bob] = PUBLIC_ADDRESSES;
        let ask = |from: &str, more: &[&str]| {
            let common = ["--http2", "--interface", from, "-i"];
            curl(service.address().port(), &authority.path(), &[&common[..], more].concat()).1
        };
        let mut held = Vec::new();
        for _ in 0..4 {
            let stream = connect_from(ada, service.address()).await.into_std().expect("a stream");
            stream.set_nonblocking(false).expect("a socket");
            held.push(hold(connect_over(stream, &authority, "h2"), "/"));
        }
        for (request, expected) in [
            (&["https://troupe.example/about"][..], &["text/html", "<h1>One moment, please.</h1>"][..]),
            (&["https://troupe.example/about", "-H", "accept: text/markdown"], &["text/markdown"]),
            (
                &["https://troupe.example/contact", "-d", "message=Hello"],
                &["text/html", "<h1>One moment, please.</h1>"],
            ),
            (&["https://troupe.example/unsubscribe/a", "-d", "not_me=on"], &["text/html"]),
            (
                &["https://troupe.example/mcp", "-d", "{}"],
                &["application/json", r#""jsonrpc":"2.0","id":null,"error""#],
            ),
            (&["https://troupe.example/api/waitlist", "-d", "{}"], &["application/problem+json", "deprecation: @"]),
        ] {
            let answer = ask(ada, request);
            assert!(answer.starts_with("HTTP/2 503") && answer.contains("\nretry-after: 1\r\n"), "{answer}");
            assert!(answer.contains("Too many requests came from your network"), "{answer}");
            for part in expected {
                assert!(answer.contains(part), "{part}: {answer}");
            }
            assert!(ask(bob, &request[..1]).starts_with("HTTP/2 ") && !ask(bob, &request[..1]).contains(" 503"));
        }
        drop(held);
        wait_until("room for a request", async || {
            ask(ada, &["https://troupe.example/about"]).starts_with("HTTP/2 200")
        })
        .await;
    })
    .await;
}
