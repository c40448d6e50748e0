//! A stranger's word as makers are shown it, on a page or at a terminal.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// What is shown of a word in which there is nothing to see.
const BLANK: &str = "(blank)";

/// One line in which nothing is hidden and nothing steers: whatever cannot be seen, turns the line
/// around or has no agreed look is shown as U+FFFD, and a word of nothing else as `(blank)`.
#[must_use]
pub fn legible(word: &str) -> String {
    let mut shown = String::with_capacity(word.len());
    // What the next mark or joiner would sit on.
    let mut carrier = None;
    for c in word.nfc() {
        let (told, next) = match c {
            _ if joins(c) => (carrier.filter(|c: &char| !c.is_ascii()).map(|_| c), carrier),
            _ if hides(c) => (None, None),
            _ if is_combining_mark(c) => (carrier.map(|_| c), carrier),
            _ if c.is_whitespace() => (Some(' '), None),
            _ => (Some(c), Some(c)),
        };
        shown.push(told.unwrap_or(char::REPLACEMENT_CHARACTER));
        carrier = next;
    }
    let blank = |c: char| [' ', char::REPLACEMENT_CHARACTER].contains(&c);
    if shown.chars().all(blank) { BLANK.to_owned() } else { shown }
}

/// What emoji and some scripts are put together with. After plain letters it does nothing but hide.
const fn joins(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

/// Controls, line ends, signs of direction, fillers, tags, what is private or no character at all.
fn hides(c: char) -> bool {
    c.is_control()
        || c as u32 & 0xfffe == 0xfffe
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{2800}'
                | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{e000}'..='\u{f8ff}'
                | '\u{fdd0}'..='\u{fdef}'
                | '\u{fff0}'..='\u{fffc}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{10ffff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_read_stays_as_it_is() {
        for word in ["hn", "reddit/r/macapps", "Grüße", "日本語", "مصدر", "می‌خواهم", "👩‍👧", "☕️", "q\u{301}", "a b"]
        {
            assert_eq!(legible(word), word);
        }
    }

    #[test]
    fn what_hides_or_steers_is_shown() {
        for (word, shown) in [
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
            assert_eq!(legible(word), shown);
        }
    }

    #[test]
    fn a_word_in_which_there_is_nothing_to_see_is_called_blank() {
        for word in ["   ", "\u{200b}\u{200b}", "\u{1}\u{2}", "\u{3000}\u{3164}", "\u{fe0f}", "\u{301}", "\u{fffd}"] {
            assert_eq!(legible(word), "(blank)", "{word:?}");
        }
    }
}
