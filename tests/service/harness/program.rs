//! The real program, as a maker starts it.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

pub struct Program {
    child: Child,
    output: BufReader<std::process::ChildStderr>,
    said: String,
}

impl Program {
    /// Runs `porchlight` with these arguments in a folder, with nothing of ours in the environment.
    pub fn command(folder: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_porchlight"));
        command.args(arguments).current_dir(folder).stdin(Stdio::null());
        for (name, _) in std::env::vars() {
            if name.starts_with("PORCHLIGHT_") {
                command.env_remove(name);
            }
        }
        command
    }

    /// Starts it and waits until it has said `word`.
    pub fn start(mut command: Command, word: &str) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program");
        let output = BufReader::new(child.stderr.take().expect("its words"));
        let mut program = Self { child, output, said: String::new() };
        program.hear(word);
        program
    }

    /// Reads on until it says `word`.
    pub fn hear(&mut self, word: &str) {
        while !self.said.contains(word) {
            let read = self.output.read_line(&mut self.said).expect("a line");
            assert!(read > 0, "it never said {word:?}, but:\n{}", self.said);
        }
    }

    pub fn said(&self) -> &str {
        &self.said
    }

    /// The address it says it listens on.
    pub fn address(&self) -> std::net::SocketAddr {
        let (_, rest) = self.said.split_once("listening on").expect("where it listens");
        rest.split_whitespace().next().expect("an address").parse().expect("an address")
    }

    /// Runs a command that ends by itself; gives the exit code and all that it said.
    pub fn run(mut command: Command) -> (i32, String) {
        let output = command.output().expect("the program");
        let said = [output.stdout, output.stderr].concat();
        (output.status.code().expect("an exit code"), String::from_utf8(said).expect("words in UTF-8"))
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([&format!("-{signal}"), &self.child.id().to_string()]).status();
        assert!(sent.expect("kill").success());
    }

    /// Waits for its end; gives the exit status and all that it said.
    pub fn end(mut self) -> (ExitStatus, String) {
        self.output.read_to_string(&mut self.said).expect("its last words");
        let status = self.child.wait().expect("its end");
        (status, std::mem::take(&mut self.said))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
