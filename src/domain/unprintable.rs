//! Classes of characters that cannot be seen or that change how the text around them is displayed.

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
