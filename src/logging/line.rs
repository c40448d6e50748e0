//! Formats one line of the log: as text, logfmt or JSON.
//!
//! Values may come from other programs, such as the reply of a mail server. They are escaped, so that none of them
//! starts a new line, looks like another field or controls a terminal.

use std::fmt::{Debug, Display, Write};

use tracing::Level;
use tracing::field::{Field, Visit};

use crate::config::LogFormat;
use crate::domain::text::{is_control_or_bidi, is_line_break};
use crate::domain::time::Timestamp;

/// The name that `tracing` gives to the message of an event.
const MESSAGE: &str = "message";

/// A line that is being written. As a visitor, it appends the fields of an event.
#[derive(Debug)]
pub(super) struct Line {
    format: LogFormat,
    line: String,
}

impl Line {
    pub(super) fn begin(format: LogFormat, time: Timestamp, level: Level) -> Self {
        let time = jiff::Timestamp::from_millisecond(time.unix_millis()).unwrap_or(jiff::Timestamp::MAX);
        let name = level.as_str().to_ascii_lowercase();
        let mut line = String::with_capacity(200);
        // Writing to a `String` cannot fail.
        let _ = match format {
            LogFormat::Logfmt => write!(line, "ts={time:.3} level={name}"),
            LogFormat::Json => write!(line, "{{\"ts\":\"{time:.3}\",\"level\":\"{name}\""),
            LogFormat::Text | LogFormat::Off => write!(line, "{time:.3} {level:>5}"),
        };
        Self { format, line }
    }

    pub(super) fn message(&mut self, message: &str) {
        self.text(MESSAGE, message);
    }

    /// Appends a number, or another value that needs no escaping.
    pub(super) fn number(&mut self, name: &str, number: impl Display) {
        self.name(name);
        let _ = write!(self.line, "{number}");
    }

    fn text(&mut self, name: &str, value: &str) {
        if self.format == LogFormat::Text && name == MESSAGE {
            self.line.push(' ');
            return append_escaped(&mut self.line, value, false);
        }
        self.name(name);
        if self.format != LogFormat::Json && !value.is_empty() && !value.contains(needs_quotes) {
            self.line.push_str(value);
        } else {
            self.line.push('"');
            append_escaped(&mut self.line, value, true);
            self.line.push('"');
        }
    }

    fn name(&mut self, name: &str) {
        let name = if name == MESSAGE { "msg" } else { name };
        let (before, after) = if self.format == LogFormat::Json { (",\"", "\":") } else { (" ", "=") };
        self.line.extend([before, name, after]);
    }

    /// Returns the whole line, with its line break.
    pub(super) fn end(mut self) -> String {
        self.line.push_str(if self.format == LogFormat::Json { "}\n" } else { "\n" });
        self.line
    }
}

impl Visit for Line {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.number(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.number(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.number(field.name(), value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.text(field.name(), &format!("{value:?}"));
    }
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
        let mut line = Line::begin(format, NOON, Level::WARN);
        line.message("mail \"waits\"");
        line.text("cause", value);
        line.number("status", 503);
        line.end()
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
