//! Terminal input and output: data goes to standard output, everything else to standard error.
//!
//! Every line and all JSON is printed with control and direction characters replaced or escaped, whether it was written
//! by visitors, mail servers, name servers or the makers.

use std::fmt::{Display, Write as _};
use std::io::{self, BufRead, ErrorKind, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

use console::Alignment;
use indicatif::ProgressStyle;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use super::failure::Failure;
pub(super) use crate::domain::text::sanitize_line;
use crate::domain::text::{is_control_or_bidi, sanitize};
use crate::logging;

/// The first error of a write to standard output. Nothing is written after it; the command itself continues.
static STDOUT_ERROR: Mutex<Option<io::Error>> = Mutex::new(None);

/// Prints a line to standard error, or to the log if this process has one. A failed write is ignored, because it must
/// not stop the command's work.
pub(super) fn eprint_line(line: &str) {
    if logging::report(line) {
        return;
    }
    let _ = io::stderr().write_all(format!("{}\n", sanitize(line)).as_bytes());
}

/// Prints a line of data to standard output.
pub(super) fn print_line(line: &str) {
    print_bytes(format!("{}\n", sanitize(line)).as_bytes());
}

/// Prints JSON to standard output, with control characters escaped.
pub(super) fn print_json(value: &Value) {
    print_line(&escape_json(&format!("{value:#}")));
}

/// Prints bytes to standard output unchanged. Returns `false` once a write has failed; see [`stdout_error`].
pub(super) fn print_bytes(bytes: &[u8]) -> bool {
    write_stdout(|| io::stdout().write_all(bytes))
}

fn write_stdout(write: impl FnOnce() -> io::Result<()>) -> bool {
    let mut error = STDOUT_ERROR.lock().unwrap_or_else(PoisonError::into_inner);
    if error.is_none() {
        *error = write().err();
    }
    error.is_none()
}

/// Flushes standard output and returns the first write error. A closed pipe, as with `| head`, is not an error.
pub(super) fn stdout_error() -> Option<io::Error> {
    write_stdout(|| io::stdout().flush());
    let error = STDOUT_ERROR.lock().unwrap_or_else(PoisonError::into_inner).take();
    error.filter(|error| error.kind() != ErrorKind::BrokenPipe)
}

/// Prints a record as JSON or as text. Text that is empty is not printed.
pub(super) fn print_record(as_json: bool, json: &Value, text: &str) {
    match (as_json, text) {
        (true, _) => print_json(json),
        (false, "") => {}
        (false, text) => print_line(text),
    }
}

/// Prints a list row by row, as lines or as a JSON array with one element per line.
#[derive(Debug)]
pub(super) struct ListPrinter {
    as_json: bool,
    len: usize,
    limit: usize,
}

impl ListPrinter {
    pub(super) fn new(as_json: bool, limit: Option<usize>) -> Self {
        Self { as_json, len: 0, limit: limit.unwrap_or(usize::MAX) }
    }

    /// Returns how many more elements may be printed.
    pub(super) const fn remaining(&self) -> usize {
        self.limit - self.len
    }

    /// Prints a heading above the first line of text.
    pub(super) fn heading(&self, line: &str) {
        if !self.as_json && self.len == 0 {
            print_line(line);
        }
    }

    /// Prints one element. Returns `false` once standard output has failed.
    pub(super) fn push(&mut self, element: &Value, line: &str) -> bool {
        let start = if self.len == 0 { "[" } else { "," };
        self.len += 1;
        let text = if self.as_json {
            format!("{start}\n  {}", escape_json(&element.to_string()))
        } else {
            format!("{}\n", sanitize(line))
        };
        print_bytes(text.as_bytes())
    }

    /// Ends the list. If no line was printed, standard error says why.
    pub(super) fn finish(self, when_empty: &str) {
        match (self.as_json, self.len) {
            (true, 0) => print_line("[]"),
            (true, _) => print_line("\n]"),
            (false, 0) if self.limit > 0 => eprint_line(when_empty),
            (false, _) => {}
        }
    }
}

/// Asks for confirmation unless `yes` is set. Another answer ends the command with the sentence `declined` and success, and
/// a standard input that is not a terminal is an error.
pub(super) fn confirm(question: &str, yes: bool, declined: &str) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        let required = "This cannot be undone, and there is no terminal to confirm it. Add --yes to proceed.";
        return Err(Failure::new(required).with_exit_code(2));
    }
    eprint_line(&format!("{question} Type yes to continue:"));
    // Read as bytes: input that is not UTF-8 is a no, not an error.
    let mut answer = Vec::new();
    io::stdin().lock().read_until(b'\n', &mut answer)?;
    if answer.trim_ascii().eq_ignore_ascii_case(b"yes") {
        return Ok(());
    }
    Err(Failure::new(declined).with_exit_code(0))
}

/// Prints the message and exits with 1 on SIGINT. Runs on its own thread, so that a blocking read does not delay it.
pub(super) fn exit_on_interrupt(message: impl Display + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut interrupt = {
        let _guard = runtime.enter();
        signal(SignalKind::interrupt())?
    };
    std::thread::spawn(move || {
        runtime.block_on(interrupt.recv());
        // The cursor may be in the line of a progress bar.
        if io::stderr().is_terminal() {
            eprint_line("");
        }
        eprint_line(&message.to_string());
        std::process::exit(1);
    });
    Ok(())
}

/// Returns the style of a progress bar.
pub(super) fn progress_style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Returns the number of columns if standard output is a terminal.
pub(super) fn terminal_width() -> Option<usize> {
    let columns = terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0));
    io::stdout().is_terminal().then_some(columns)
}

/// Formats cells of fixed width and a last cell that takes the remaining width.
pub(super) fn format_row(cells: &[(String, usize)], last: &str, width: Option<usize>) -> String {
    let mut line = String::new();
    for (cell, cell_width) in cells {
        line += &pad(cell, *cell_width);
        line += "  ";
    }
    truncate(&(line + last), width).trim_end().to_owned()
}

/// Pads or truncates to exactly `width` columns.
pub(super) fn pad(cell: &str, width: usize) -> String {
    console::pad_str(cell, width, Alignment::Left, Some("…")).into_owned()
}

/// Truncates to `width` columns, if given.
pub(super) fn truncate(line: &str, width: Option<usize>) -> String {
    width.map_or_else(|| line.to_owned(), |width| console::truncate_str(line, width, "…").into_owned())
}

/// Escapes control and direction characters in serialized JSON. Outside of strings, the only ones are line breaks.
fn escape_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if is_control_or_bidi(c) && c != '\n' {
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_from_visitors_cannot_control_a_terminal() {
        let hostile = "a\u{1b}[31m\u{7f}\u{9b}2J\u{202e}b\u{2069}\u{200f}\u{61c}\r";
        assert!(!sanitize(hostile).chars().any(is_control_or_bidi));
        assert_eq!(sanitize_line(" two\nlines\u{9b} "), "two lines\u{fffd}");
        assert_eq!(sanitize("two\n\tlines é 漢"), "two\n\tlines é 漢");
        let value = json!({ "text": format!("{hostile}\n") });
        let printed = escape_json(&format!("{value:#}"));
        assert!(!printed.chars().any(|c| is_control_or_bidi(c) && c != '\n'), "{printed:?}");
        assert!(printed.contains("\\u009b2J\\u202eb"), "{printed}");
        assert_eq!(serde_json::from_str::<Value>(&printed).unwrap(), value, "escaping keeps the value");
    }

    #[test]
    fn rows_are_aligned_and_fit_the_terminal_in_every_script() {
        let wide = format_row(&[("漢字".to_owned(), 6)], "last", None);
        assert_eq!(wide, "漢字    last");
        assert_eq!(format_row(&[("abc".to_owned(), 6)], "last", None), "abc     last");
        for width in 1..40 {
            let line = format_row(&[("漢字漢字漢字".to_owned(), 7), ("x".to_owned(), 3)], "漢字 and more", Some(width));
            assert!(console::measure_text_width(&line) <= width, "{width}: {line}");
        }
    }
}
