//! The header `List-Id` (RFC 2919), by which mail programs recognize, group and filter the letters of one app.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListId {
    app: String,
    host: String,
}

impl ListId {
    pub fn new(app: &str, host: &str) -> Self {
        // What would have to be quoted is left out: a name that is not ASCII is encoded, and an encoded word cannot be quoted.
        let is_plain = |c: char| c.is_alphanumeric() || c == '-';
        let words: Vec<_> = app.split(|c| !is_plain(c)).filter(|word| !word.is_empty()).collect();
        Self { app: words.join(" "), host: host.trim_matches(['[', ']']).replace(':', "-") }
    }
}

impl fmt::Display for ListId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} <letter.{}>", self.app, self.host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_the_name_of_the_app_and_an_identifier_below_the_host() {
        for (app, host, header) in [
            ("Troupe", "troupe.example", "Troupe <letter.troupe.example>"),
            ("Größe & Co., \"Inc\" <x@y>", "troupe.example", "Größe Co Inc x y <letter.troupe.example>"),
            ("T", "[::1]", "T <letter.--1>"),
        ] {
            assert_eq!(ListId::new(app, host).to_string(), header);
        }
    }
}
