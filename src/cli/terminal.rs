//! How commands speak: data goes to standard output, everything else to standard error.
//!
//! Strangers wrote some of it. Whatever would steer a terminal, or turn the order of its letters
//! round, is made visible instead.

use std::fmt::{Display, Write as _};
use std::io::{self, BufRead, ErrorKind, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

use console::Alignment;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use super::CommandFailure;

/// Why data did not arrive, as long as the command goes on.
static UNHEARD: Mutex<Option<io::Error>> = Mutex::new(None);

/// Writes for the person at the terminal. That nobody is there keeps no work from being done.
pub(super) fn tell(line: &str) {
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Writes a line of data, for people and programs alike.
pub(super) fn say(line: &str) {
    say_as_is(format!("{line}\n").as_bytes());
}

/// Writes JSON, in which nothing steers a terminal either.
pub(super) fn say_json(value: &Value) {
    say(&escaped(&format!("{value:#}")));
}

/// Writes what has been made to the last byte. False once nobody hears it; [`unheard`] knows why.
pub(super) fn say_as_is(bytes: &[u8]) -> bool {
    note(|| io::stdout().write_all(bytes))
}

fn note(write: impl FnOnce() -> io::Result<()>) -> bool {
    let mut unheard = UNHEARD.lock().unwrap_or_else(PoisonError::into_inner);
    if unheard.is_none() {
        *unheard = write().err();
    }
    unheard.is_none()
}

/// Why data did not arrive. Who stopped reading has seen enough, and is no reason.
pub(super) fn unheard() -> Option<io::Error> {
    note(|| io::stdout().flush());
    let why = UNHEARD.lock().unwrap_or_else(PoisonError::into_inner).take();
    why.filter(|why| why.kind() != ErrorKind::BrokenPipe)
}

/// A list that is told as it is read: lines, or for programs an array with one member a line.
#[derive(Debug)]
pub(super) struct List {
    as_json: bool,
    /// Stands over the lines, if there are any.
    heading: Option<String>,
    pub length: usize,
}

impl List {
    pub(super) fn new(as_json: bool, heading: Option<String>) -> Self {
        Self { as_json, heading, length: 0 }
    }

    /// False once nobody hears it.
    pub(super) fn add(&mut self, member: impl FnOnce() -> Value, line: impl FnOnce() -> String) -> bool {
        let start = match (self.as_json, self.length) {
            (true, 0) => "[\n  ".to_owned(),
            (true, _) => ",\n  ".to_owned(),
            (false, 0) => self.heading.take().map(|heading| heading + "\n").unwrap_or_default(),
            (false, _) => String::new(),
        };
        self.length += 1;
        let text = if self.as_json { start + &escaped(&member().to_string()) } else { start + &line() + "\n" };
        say_as_is(text.as_bytes())
    }

    pub(super) fn end(&self) {
        match (self.as_json, self.length) {
            (true, 0) => say("[]"),
            (true, _) => say("\n]"),
            (false, _) => {}
        }
    }
}

/// Asks before what cannot be undone.
pub(super) fn confirm(question: &str, yes: bool) -> Result<bool, CommandFailure> {
    if yes {
        return Ok(true);
    }
    if !io::stdin().is_terminal() {
        return Err(CommandFailure::DnsFailure);
    }
    tell(&format!("{question} Type yes to go on:"));
    // Whatever is typed that is not yes is a no, in whichever encoding.
    let mut answer = Vec::new();
    io::stdin().lock().read_until(b'\n', &mut answer)?;
    Ok(answer.trim_ascii().eq_ignore_ascii_case(b"yes"))
}

/// Says what is left and ends the program when it is interrupted. This works from a thread of its own: while a file is
/// read, nothing else would notice.
pub(super) fn when_interrupted(words: impl Display + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut interrupt = {
        let _inside = runtime.enter();
        signal(SignalKind::interrupt())?
    };
    std::thread::spawn(move || {
        runtime.block_on(interrupt.recv());
        tell_below_bars(&words.to_string());
        std::process::exit(1);
    });
    Ok(())
}

/// A bar may stand in the line of the cursor.
fn tell_below_bars(line: &str) {
    if io::stderr().is_terminal() {
        tell("");
    }
    tell(line);
}

/// How many columns there are, if somebody is looking.
pub(super) fn width() -> Option<usize> {
    let columns = terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0));
    io::stdout().is_terminal().then_some(columns)
}

/// Cells side by side, each as wide as it is said to be, and the last as wide as there is room for.
pub(super) fn row(cells: &[(String, usize)], last: &str, width: Option<usize>) -> String {
    let mut line = String::new();
    for (cell, wide) in cells {
        line += &padded(cell, *wide);
        line += "  ";
    }
    cut(&(line + last), width).trim_end().to_owned()
}

/// Exactly as wide; what is longer is cut.
pub(super) fn padded(cell: &str, wide: usize) -> String {
    console::pad_str(cell, wide, Alignment::Left, Some("…")).into_owned()
}

/// No wider than the terminal, if there is one.
pub(super) fn cut(line: &str, width: Option<usize>) -> String {
    width.map_or_else(|| line.to_owned(), |width| console::truncate_str(line, width, "…").into_owned())
}

/// A text of several lines as a terminal may be shown it.
pub(super) fn visible(text: &str) -> String {
    let shown = |c: char| if steers(c) && !['\n', '\t'].contains(&c) { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().map(shown).collect()
}

/// The same in one line.
pub(super) fn visible_line(text: &str) -> String {
    visible(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Such characters can stand in JSON only within a text, but for the line breaks between members.
fn escaped(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if steers(c) && c != '\n' {
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Whether a terminal obeys it instead of showing it: controls, and marks that change the direction of writing.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_strangers_wrote_cannot_steer_a_terminal() {
        let nasty = "a\u{1b}[31m\u{7f}\u{9b}2J\u{202e}b\u{2069}\u{200f}\u{61c}\r";
        assert!(!visible(nasty).chars().any(steers));
        assert_eq!(visible_line(" two\nlines\u{9b} "), "two lines\u{fffd}");
        assert_eq!(visible("two\n\tlines é 漢"), "two\n\tlines é 漢");
        let value = json!({ "text": format!("{nasty}\n") });
        let told = escaped(&format!("{value:#}"));
        assert!(!told.chars().any(|c| steers(c) && c != '\n'), "{told:?}");
        assert!(told.contains("\\u009b2J\\u202eb"), "{told}");
        assert_eq!(serde_json::from_str::<Value>(&told).unwrap(), value, "it is still the same value");
    }

    #[test]
    fn rows_fit_and_stand_below_each_other_whatever_the_script() {
        let wide = row(&[("漢字".to_owned(), 6)], "last", None);
        assert_eq!(wide, "漢字    last");
        assert_eq!(row(&[("abc".to_owned(), 6)], "last", None), "abc     last");
        for width in 1..40 {
            let line = row(&[("漢字漢字漢字".to_owned(), 7), ("x".to_owned(), 3)], "漢字 and more", Some(width));
            assert!(console::measure_text_width(&line) <= width, "{width}: {line}");
        }
    }
}
