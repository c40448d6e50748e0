//! The real program, as a maker starts it.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Instant;

use porchlight::domain::time::Timestamp;
use rustix::process::{Pid, Signal, kill_process};

use super::NOW;
use super::wait::{WATCHDOG, with_deadline};

pub struct Program {
    child: Option<Child>,
    pid: Pid,
    lines: Receiver<String>,
    output: String,
}

impl Program {
    /// Runs `porchlight` with these arguments in a folder, at the time of the tests, without settings from our own
    /// environment.
    pub fn command(folder: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_porchlight"));
        command.args(arguments).current_dir(folder).stdin(Stdio::null());
        for (name, _) in std::env::vars() {
            if name.starts_with("PORCHLIGHT_") || name.starts_with("AWS_") {
                command.env_remove(name);
            }
        }
        // Not the settings of a Porchlight that is installed on this machine.
        if !folder.join("porchlight.toml").exists() {
            command.env("PORCHLIGHT_CONFIG", "/dev/null");
        }
        Self::set_clock(&mut command, NOW);
        command
    }

    /// Makes a command run at this time: its clock starts there and goes on.
    pub fn set_clock(command: &mut Command, now: Timestamp) {
        command.env("PORCHLIGHT_TEST_NOW", now.unix_millis().to_string());
    }

    /// Starts it and waits until it has written `text` to standard error.
    pub fn start(mut command: Command, text: &str) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program");
        let mut stderr = BufReader::new(child.stderr.take().expect("its standard error"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            while stderr.read_line(&mut line).expect("a line in UTF-8") > 0 {
                let _ = sender.send(std::mem::take(&mut line));
            }
        });
        let pid = Pid::from_child(&child);
        let mut program = Self { child: Some(child), pid, lines, output: String::new() };
        program.wait_for_output(text);
        program
    }

    /// Waits until it has written `text` to standard error.
    pub fn wait_for_output(&mut self, text: &str) {
        let deadline = Instant::now() + WATCHDOG;
        while !self.output.contains(text) {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.output.push_str(&line),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended without {text:?}:\n{}", self.output),
                Err(RecvTimeoutError::Timeout) => panic!("waited {WATCHDOG:?} in vain for {text:?}:\n{}", self.output),
            }
        }
    }

    /// What it has written to standard error, as far as the test has waited for it.
    pub fn output(&self) -> &str {
        &self.output
    }

    /// The address that it reports to listen on.
    pub fn address(&self) -> SocketAddr {
        address_in(&self.output, "listen")
    }

    /// Runs a command to its end; returns the exit code and all output.
    pub fn run(mut command: Command) -> (i32, String) {
        let output = Self::run_to_end(&mut command);
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().expect("an exit code"), String::from_utf8(text).expect("output in UTF-8"))
    }

    /// Runs a command to its end, as `Command::output` does, but not for longer than the watchdog allows.
    pub fn run_to_end(command: &mut Command) -> Output {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program");
        Self::wait(child, &format!("the end of {command:?}"))
    }

    /// Waits for the end of a child process.
    pub fn wait(child: Child, awaited: &str) -> Output {
        with_deadline(child, awaited, Child::wait_with_output).expect("its end")
    }

    pub fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).expect("a process to signal");
    }

    /// Waits for its end; returns the exit status and all that it has written to standard error.
    pub fn end(mut self) -> (ExitStatus, String) {
        let child = self.child.take().expect("a program that has not ended");
        let output = Self::wait(child, "the end of the program");
        self.output.extend(self.lines.iter());
        (output.status, std::mem::take(&mut self.output))
    }
}

/// The address that a log in logfmt gives a field.
pub fn address_in(log: &str, field: &str) -> SocketAddr {
    let (_, rest) = log.split_once(&format!(" {field}=")).expect("where it listens");
    rest.split_whitespace().next().expect("an address").parse().expect("an address")
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
