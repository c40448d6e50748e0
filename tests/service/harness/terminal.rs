//! A pseudoterminal with typed input.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::Command;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::wait::with_deadline;

pub struct Terminal {
    keyboard: File,
    device: String,
}

impl Terminal {
    pub fn new(columns: u16) -> Self {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&keyboard).expect("a terminal of ours");
        unlockpt(&keyboard).expect("a terminal to be opened");
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&keyboard, size).expect("a size");
        let device = ptsname(&keyboard, Vec::new()).expect("a name").into_string().expect("a name");
        Self { keyboard: File::from(keyboard), device }
    }

    /// Runs a command there, with the input typed ahead; returns the exit code and the screen.
    pub fn run(mut self, mut command: Command, typed: &[u8]) -> (i32, String) {
        let device = || OpenOptions::new().read(true).write(true).open(&self.device).expect("the terminal");
        let child = command.stdin(device()).stdout(device()).stderr(device()).spawn().expect("the program");
        // The command holds the terminal open, too.
        drop(command);
        self.keyboard.write_all(typed).expect("a keyboard");
        with_deadline(child, "the end of a command at a terminal", move |mut child| {
            let mut screen = Vec::new();
            match self.keyboard.read_to_end(&mut screen) {
                Ok(_) => {}
                // Linux's sign that no process has the terminal open any more.
                Err(error) => assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()), "{error}"),
            }
            let code = child.wait().expect("its end").code().expect("an exit code");
            (code, String::from_utf8_lossy(&screen).replace("\r\n", "\n"))
        })
    }
}
