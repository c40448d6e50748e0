//! Sockets that a service manager holds: a restart refuses nobody.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::harness::{Program, wait_until};

/// Holds a socket and restarts the program on it: the new one is started, says that it is ready, and the old one is stopped.
const MANAGER: &str = r#"
import os, signal, socket, subprocess, sys
held = socket.create_server(("127.0.0.1", 0), backlog=1024)
notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
notify.bind("notify")
notify.settimeout(60)

def start():
    # The shell becomes the program, so that LISTEN_PID is its own.
    script = f'exec 3<&{held.fileno()}; export LISTEN_PID=$$ LISTEN_FDS=1; exec "$@"'
    environment = dict(os.environ, NOTIFY_SOCKET=os.path.abspath("notify"))
    child = subprocess.Popen(["bash", "-c", script, "bash", *sys.argv[1:]], pass_fds=[held.fileno()], env=environment)
    state = notify.recv(100)
    assert state == b"READY=1", state
    return child

running = start()
print(held.getsockname()[1], flush=True)
for _ in sys.stdin:
    replaced, running = running, None
    replaced.send_signal(signal.SIGTERM)
    state = notify.recv(100)
    assert state == b"STOPPING=1", state
    running = start()
    assert replaced.wait(60) == 0
    print("restarted", flush=True)
running.send_signal(signal.SIGTERM)
sys.exit(running.wait(60))
"#;

struct Manager {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<std::process::ChildStdout>,
}

impl Manager {
    fn start(folder: &std::path::Path) -> (Self, u16) {
        let program = Program::command(folder, &[]);
        let mut command = Command::new("python3");
        command.args(["-c", MANAGER, env!("CARGO_BIN_EXE_porchlight"), "serve", "--ops-listen", "off"]);
        command.args(["--log-format", "off", "--listen", "127.0.0.1:1"]).current_dir(folder);
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let mut manager = Self { child, input, output };
        let port = manager.line().parse().expect("a port");
        (manager, port)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    fn restart(&mut self) {
        self.input.as_mut().expect("its input").write_all(b"restart\n").expect("a line");
        assert_eq!(self.line(), "restarted");
    }

    fn stop(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().expect("its end").success());
    }
}

#[tokio::test]
async fn a_restart_on_a_held_socket_fails_no_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut manager, port) = Manager::start(folder.path());
    let (done, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut clients = Vec::new();
    for client in 0..4_usize {
        let (done, answered) = (Arc::clone(&done), Arc::clone(&answered));
        clients.push(tokio::spawn(async move {
            let kept = reqwest::Client::new();
            while !done.load(Ordering::Relaxed) {
                // Half of the clients connect anew for every request.
                let client = if client.is_multiple_of(2) { kept.clone() } else { reqwest::Client::new() };
                let page = client.get(format!("http://127.0.0.1:{port}/llms.txt")).send().await.expect("an answer");
                assert_eq!(page.status(), 200);
                assert!(page.text().await.expect("all of it").starts_with("# Troupe"));
                answered.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }
    for _ in 0..3 {
        // Under load each time.
        let before = answered.load(Ordering::Relaxed);
        wait_until("requests", async || answered.load(Ordering::Relaxed) >= before + 8).await;
        let restart = move || {
            manager.restart();
            manager
        };
        manager = tokio::task::spawn_blocking(restart).await.expect("a restart");
    }
    done.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.expect("no request failed");
    }
    tokio::task::spawn_blocking(move || manager.stop()).await.expect("an end");
}
