//! Text from visitors and callers, made safe to display, and the characters that cannot be seen or that change how the
//! text around them is displayed.

use std::io;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// Stands for a text without any visible character.
const BLANK: &str = "(blank)";

/// Returns `text` as one line without invisible or direction characters: each is replaced by
/// U+FFFD. If nothing visible is left, returns `(blank)`.
pub fn sanitize_label(text: &str) -> String {
    let mut label = String::with_capacity(text.len());
    // The character that a following combining mark or joiner applies to.
    let mut base = None;
    for c in text.nfc() {
        let (kept, next_base) = match c {
            // After ASCII a joiner has no visible effect.
            _ if is_joiner(c) => (base.filter(|base: &char| !base.is_ascii()).map(|_| c), base),
            _ if is_invisible(c) => (None, None),
            _ if is_combining_mark(c) => (base.map(|_| c), base),
            _ if c.is_whitespace() => (Some(' '), None),
            _ => (Some(c), Some(c)),
        };
        label.push(kept.unwrap_or(char::REPLACEMENT_CHARACTER));
        base = next_base;
    }
    let is_blank = |c: char| [' ', char::REPLACEMENT_CHARACTER].contains(&c);
    if label.chars().all(is_blank) { BLANK.to_owned() } else { label }
}

/// Returns the first `max_chars` characters of `text`, with U+FFFD for each control or direction
/// character. For what an error response repeats of a request.
pub fn excerpt(text: &str, max_chars: usize) -> String {
    text.chars().take(max_chars).map(|c| if is_control_or_bidi(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Returns `text` with U+FFFD for each control or direction character, except line breaks and tabs.
pub fn sanitize(text: &str) -> String {
    let replace = |c: char| {
        if is_control_or_bidi(c) && !['\n', '\t'].contains(&c) { char::REPLACEMENT_CHARACTER } else { c }
    };
    text.chars().map(replace).collect()
}

/// Returns the lines of `text`, whatever ends them, without characters on which a mail client or terminal acts.
pub fn lines(text: &str) -> Vec<String> {
    text.replace("\r\n", "\n").split(is_line_break).map(sanitize).collect()
}

/// As [`sanitize`], with whitespace collapsed to one line.
pub fn sanitize_line(text: &str) -> String {
    sanitize(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Returns `text` with its first letter as a capital.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Whether `c` changes the direction of the text around it (Unicode property `Bidi_Control`).
pub const fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a terminal or mail client acts on `c` instead of displaying it.
pub fn is_control_or_bidi(c: char) -> bool {
    c.is_control() || is_bidi_control(c)
}

/// Whether some mail client or terminal starts a new line at `c`.
pub const fn is_line_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether Unicode reserves `c` and never assigns it a character.
pub const fn is_noncharacter(c: char) -> bool {
    c as u32 & 0xfffe == 0xfffe || matches!(c, '\u{fdd0}'..='\u{fdef}')
}

/// Whether `c` joins or varies the characters around it, as in emoji and some scripts.
pub const fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

/// Whether `c` has no visible form of its own: controls, line breaks, fillers, tags, private use and
/// noncharacters. Joiners are not included.
pub fn is_invisible(c: char) -> bool {
    is_control_or_bidi(c)
        || is_line_break(c)
        || is_noncharacter(c)
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{200b}' | '\u{2800}'
                | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
                | '\u{180b}'..='\u{180f}'
                | '\u{2060}'..='\u{206f}'
                | '\u{e000}'..='\u{f8ff}'
                | '\u{fff0}'..='\u{fffc}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{10ffff}'
        )
}

/// Returns `singular` if `number` is 1, otherwise `plural`.
pub const fn plural_form<'a>(number: u64, singular: &'a str, plural: &'a str) -> &'a str {
    if number == 1 { singular } else { plural }
}

/// Returns the number followed by the matching form, as in `1 person` or `2 people`.
pub fn quantity(number: impl Into<u64>, singular: &str, plural: &str) -> String {
    let number = number.into();
    format!("{number} {}", plural_form(number, singular, plural))
}

/// Returns why a file cannot be used, without the number of the error.
pub fn io_error_in_words(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::NotFound {
        return "there is no such file".to_owned();
    }
    let text = error.to_string();
    text.split_once(" (os error").map_or(text.as_str(), |(words, _)| words).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readable_text_is_not_changed() {
        for text in ["hn", "reddit/r/macapps", "Grüße", "日本語", "مصدر", "می‌خواهم", "👩‍👧", "☕️", "q\u{301}", "a b"]
        {
            assert_eq!(sanitize_label(text), text);
        }
    }

    #[test]
    fn invisible_and_direction_characters_are_replaced() {
        for (text, expected) in [
            ("a\u{1b}[31m", "a\u{fffd}[31m"),
            ("two\nlines", "two\u{fffd}lines"),
            ("\u{202e}live", "\u{fffd}live"),
            ("h\u{200b}n", "h\u{fffd}n"),
            ("hn\u{200d}", "hn\u{fffd}"),
            ("\u{301}hn", "\u{fffd}hn"),
            ("a\u{ffff}\u{e123}\u{e0041}", "a\u{fffd}\u{fffd}\u{fffd}"),
            ("a\u{a0}b", "a b"),
            ("e\u{301}", "é"),
        ] {
            assert_eq!(sanitize_label(text), expected);
        }
    }

    #[test]
    fn text_without_a_visible_character_is_shown_as_blank() {
        for text in ["   ", "\u{200b}\u{200b}", "\u{1}\u{2}", "\u{3000}\u{3164}", "\u{fe0f}", "\u{301}", "\u{fffd}"] {
            assert_eq!(sanitize_label(text), "(blank)", "{text:?}");
        }
    }

    #[test]
    fn an_excerpt_is_short_and_has_no_control_or_direction_characters() {
        assert_eq!(excerpt("/api/x", 64), "/api/x");
        assert_eq!(excerpt("a\r\n\u{1b}[31m\u{202e}b\u{85}", 64), "a\u{fffd}\u{fffd}\u{fffd}[31m\u{fffd}b\u{fffd}");
        assert_eq!(excerpt("日本語", 2), "日本");
        assert_eq!(excerpt(&"x".repeat(1000), 200).len(), 200);
    }

    #[test]
    fn every_kind_of_line_ending_ends_a_line() {
        assert_eq!(lines("a\r\nb\rc\nd\u{2028}e\u{85}\r\n"), ["a", "b", "c", "d", "e", "", ""]);
        assert_eq!(lines("a\u{1b}[2J\tb\n\u{202e}c"), ["a\u{fffd}[2J\tb", "\u{fffd}c"]);
    }

    #[test]
    fn only_one_is_singular() {
        assert_eq!(quantity(1_u64, "person", "people"), "1 person");
        assert_eq!(quantity(0_u64, "person", "people"), "0 people");
        assert_eq!(quantity(2_u32, "person", "people"), "2 people");
    }
}
