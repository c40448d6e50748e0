//! Formats one line of the log: as text, logfmt or JSON.
//!
//! Values may come from other programs, such as the reply of a mail server. They are escaped, so that none of them
//! starts a new line, looks like another field or controls a terminal.

use std::error::Error;
use std::fmt::{Debug, Display, Write};

use tracing::Level;
use tracing::field::{Field, Visit};

use crate::config::LogFormat;
use crate::domain::display_text::{is_control_or_bidi, is_line_break};
use crate::domain::time::Timestamp;

/// The name that `tracing` gives to the message of an event.
const MESSAGE: &str = "message";
/// Those of the largest `u64`.
const MAX_DIGITS: usize = 20;

/// The buffers of a line, which are kept between lines so that a line allocates nothing.
#[derive(Debug, Default)]
pub(super) struct LineBuffer {
    line: String,
    /// A value before it is escaped.
    value: String,
    time: SecondText,
}

/// The text of the last second that was formatted: most lines are of the same second as the line before.
#[derive(Debug, Default)]
struct SecondText {
    second: i64,
    /// Such as `2026-11-15T12:00:00`.
    text: String,
}

impl SecondText {
    fn get(&mut self, time: Timestamp) -> &str {
        if self.second != time.unix_seconds() || self.text.is_empty() {
            let text = time.rfc3339();
            *self = Self { second: time.unix_seconds(), text: text.trim_end_matches('Z').to_owned() };
        }
        &self.text
    }
}

/// A line that is being written. As a visitor, it appends the fields of an event.
#[derive(Debug)]
pub(super) struct Line<'a> {
    format: LogFormat,
    buffer: &'a mut LineBuffer,
}

impl<'a> Line<'a> {
    pub(super) fn begin(format: LogFormat, buffer: &'a mut LineBuffer, time: Timestamp, level: Level) -> Self {
        let LineBuffer { line, time: second, .. } = &mut *buffer;
        let (before, between, level, after) = match format {
            LogFormat::Logfmt => ("ts=", " level=", name(level), ""),
            LogFormat::Json => ("{\"ts\":\"", "\",\"level\":\"", name(level), "\""),
            LogFormat::Text | LogFormat::Off => ("", " ", padded_name(level), ""),
        };
        line.clear();
        line.push_str(before);
        line.push_str(second.get(time));
        line.push('.');
        append_digits(line, time.unix_millis().rem_euclid(1000).unsigned_abs(), 3);
        for part in ["Z", between, level, after] {
            line.push_str(part);
        }
        Self { format, buffer }
    }

    pub(super) fn message(&mut self, message: &str) {
        self.text(MESSAGE, message);
    }

    pub(super) fn text(&mut self, name: &str, text: &str) {
        append_text(self.format, &mut self.buffer.line, name, text);
    }

    /// Appends a number, or another value that needs no escaping.
    fn number(&mut self, name: &str, number: impl Display) {
        append_name(self.format, &mut self.buffer.line, name);
        // Writing to a `String` cannot fail.
        let _ = write!(self.buffer.line, "{number}");
    }

    /// As [`Self::number`], several times as fast: every request logs some.
    pub(super) fn count(&mut self, name: &str, count: u64) {
        append_name(self.format, &mut self.buffer.line, name);
        append_digits(&mut self.buffer.line, count, 1);
    }

    fn value(&mut self, name: &str, value: std::fmt::Arguments<'_>) {
        let LineBuffer { line, value: text, .. } = &mut *self.buffer;
        text.clear();
        let _ = text.write_fmt(value);
        append_text(self.format, line, name, text);
    }

    /// Returns the whole line, with its line break.
    pub(super) fn end(self) -> &'a str {
        let line = &mut self.buffer.line;
        line.push_str(if self.format == LogFormat::Json { "}\n" } else { "\n" });
        line
    }
}

impl Visit for Line<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        if value.is_finite() {
            self.number(field.name(), value);
        } else {
            self.value(field.name(), format_args!("{value}"));
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.number(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.count(field.name(), value);
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.number(field.name(), value);
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.number(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.number(field.name(), value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field.name(), value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.value(field.name(), format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.value(field.name(), format_args!("{value:?}"));
    }
}

fn name(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

/// The level in capitals, right-aligned.
fn padded_name(level: Level) -> &'static str {
    match level {
        Level::ERROR => "ERROR",
        Level::WARN => " WARN",
        Level::INFO => " INFO",
        Level::DEBUG => "DEBUG",
        Level::TRACE => "TRACE",
    }
}

fn append_name(format: LogFormat, line: &mut String, name: &str) {
    let name = if name == MESSAGE { "msg" } else { name };
    match format {
        LogFormat::Json => {
            line.push_str(",\"");
            line.push_str(name);
            line.push_str("\":");
        }
        LogFormat::Text | LogFormat::Logfmt | LogFormat::Off => {
            line.push(' ');
            line.push_str(name);
            line.push('=');
        }
    }
}

/// Appends a number with at least this many digits.
fn append_digits(line: &mut String, mut number: u64, least: usize) {
    let mut digits = [0; MAX_DIGITS];
    let mut start = digits.len();
    while start > 0 && (number > 0 || digits.len() - start < least) {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    line.push_str(str::from_utf8(&digits[start..]).unwrap_or_default());
}

fn append_text(format: LogFormat, line: &mut String, name: &str, value: &str) {
    if format == LogFormat::Text && name == MESSAGE {
        line.push(' ');
        return append_escaped(line, value, false);
    }
    append_name(format, line, name);
    let is_bare = format != LogFormat::Json && !value.is_empty() && (is_plain(value) || !value.contains(needs_quotes));
    if is_bare {
        line.push_str(value);
    } else {
        line.push('"');
        append_escaped(line, value, true);
        line.push('"');
    }
}

/// Whether a value certainly needs neither quotes nor escapes. Nearly all values are plain, and this is quick to tell.
fn is_plain(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'=' | b'"' | b'\\'))
}

/// Whether a reader of logfmt would take `c` for something else than a part of the value.
fn needs_quotes(c: char) -> bool {
    matches!(c, ' ' | '=' | '"' | '\\') || needs_unicode_escape(c)
}

fn needs_unicode_escape(c: char) -> bool {
    is_control_or_bidi(c) || is_line_break(c)
}

/// Escapes as in a JSON string, which readers of logfmt understand too.
fn append_escaped(line: &mut String, value: &str, is_quoted: bool) {
    if is_plain(value) {
        return line.push_str(value);
    }
    for c in value.chars() {
        match c {
            '"' | '\\' if is_quoted => line.extend(['\\', c]),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            c if needs_unicode_escape(c) => {
                let _ = write!(line, "\\u{:04x}", u32::from(c));
            }
            c => line.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const NOON: Timestamp = Timestamp::from_unix_millis(1_794_744_000_007);
    const HOSTILE: &str = "550 \"no\" \\ a=b\r\nts=now\tlevel=info \u{1b}[31m\u{9b}\u{202e}\u{2028}é";

    fn line(format: LogFormat, value: &str) -> String {
        let mut buffer = LineBuffer::default();
        let mut line = Line::begin(format, &mut buffer, NOON, Level::WARN);
        line.message("mail \"waits\"");
        line.value("cause", format_args!("{value}"));
        line.count("status", 503);
        line.end().to_owned()
    }

    #[test]
    fn a_line_has_its_time_level_message_and_fields() {
        assert_eq!(
            line(LogFormat::Logfmt, "/api/{*path}"),
            "ts=2026-11-15T12:00:00.007Z level=warn msg=\"mail \\\"waits\\\"\" cause=/api/{*path} status=503\n"
        );
        assert_eq!(
            line(LogFormat::Text, "two words"),
            "2026-11-15T12:00:00.007Z  WARN mail \"waits\" cause=\"two words\" status=503\n"
        );
        let json: Value = serde_json::from_str(&line(LogFormat::Json, "")).unwrap();
        let expected = serde_json::json!({
            "ts": "2026-11-15T12:00:00.007Z", "level": "warn", "msg": "mail \"waits\"", "cause": "", "status": 503
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn numbers_have_all_their_digits() {
        for (number, least, text) in
            [(0, 1, "0"), (7, 3, "007"), (100, 1, "100"), (1234, 3, "1234"), (u64::MAX, 1, "18446744073709551615")]
        {
            let mut line = String::new();
            append_digits(&mut line, number, least);
            assert_eq!(line, text);
        }
    }

    #[test]
    fn a_value_cannot_end_its_line_or_field_nor_control_a_terminal() {
        for format in [LogFormat::Text, LogFormat::Logfmt, LogFormat::Json] {
            let line = line(format, HOSTILE);
            let (content, end) = line.split_at(line.len() - 1);
            assert_eq!(end, "\n");
            assert!(!content.contains(needs_unicode_escape), "{content:?}");
        }
        let json: Value = serde_json::from_str(&line(LogFormat::Json, HOSTILE)).unwrap();
        assert_eq!(json["cause"], HOSTILE);
        let logfmt = line(LogFormat::Logfmt, HOSTILE);
        let (_, rest) = logfmt.split_once(" cause=").unwrap();
        let value = rest.strip_suffix(" status=503\n").unwrap();
        assert_eq!(serde_json::from_str::<String>(value).unwrap(), HOSTILE, "quoted as in JSON");
    }
}
