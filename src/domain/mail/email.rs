//! Email addresses.

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};
use serde::Serialize;

use crate::domain::limits;
use crate::domain::text::{is_invisible, is_joiner};

/// The pattern for schemas. It matches every address that `parse` accepts. For ASCII addresses
/// without `xn--` it matches no others; of the rest it also matches some that IDNA rejects.
pub const PATTERN: &str = concat!(
    r"^(?=[^@]{1,64}@)",
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@",
    r"([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)+",
    r"|[A-Za-z0-9.-]*[^\x00-\x7F][^\x00-,/:-@\[-`{-\x7F]*)$",
);

/// An address, as typed, and its normalized form as a key for comparison. It is valid, or was when it was stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct EmailAddress {
    typed: String,
    #[serde(skip)]
    key: String,
}

/// The first rule that a text breaks, in the order in which they are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEmail {
    #[error("it has {0} characters, and an address has at most {max}", max = limits::MAX_EMAIL_CHARS)]
    TooLong(usize),
    #[error("the part before the @ has more than {max} characters", max = limits::MAX_LOCAL_PART_BYTES)]
    LocalPartTooLong,
    #[error("there is a space or a line break before or after it")]
    SpaceAround,
    #[error("it needs exactly one @, as in name@example.com")]
    At,
    #[error("nothing stands before the @")]
    NoLocalPart,
    #[error("nothing stands after the @")]
    NoDomain,
    #[error(
        "{} is not allowed before the @, only letters from a to z, digits, single dots and !#$%&'*+/=?^_`{{|}}~-",
        named(*.0)
    )]
    Character(char),
    #[error("the part before the @ starts or ends with a dot, or has two dots in a row")]
    Dots,
    #[error("the part after the @ is not a domain name such as example.com")]
    Domain,
    #[error("with its domain in ASCII, as in mail, it has {0} characters, and an address has at most {max}", max = limits::MAX_EMAIL_CHARS)]
    TooLongInAscii(usize),
}

impl EmailAddress {
    pub fn parse(typed: &str) -> Result<Self, InvalidEmail> {
        let length = typed.chars().count();
        if length > limits::MAX_EMAIL_CHARS {
            return Err(InvalidEmail::TooLong(length));
        }
        let parts = typed.split_once('@');
        if parts.is_some_and(|(local, _)| local.len() > limits::MAX_LOCAL_PART_BYTES) {
            return Err(InvalidEmail::LocalPartTooLong);
        }
        if typed.trim() != typed {
            return Err(InvalidEmail::SpaceAround);
        }
        let (local, domain) = parts.filter(|(_, domain)| !domain.contains('@')).ok_or(InvalidEmail::At)?;
        if local.is_empty() {
            return Err(InvalidEmail::NoLocalPart);
        }
        if domain.is_empty() {
            return Err(InvalidEmail::NoDomain);
        }
        if let Some(character) = local.chars().find(|c| !is_atom_character(*c) && *c != '.') {
            return Err(InvalidEmail::Character(character));
        }
        if local.split('.').any(str::is_empty) {
            return Err(InvalidEmail::Dots);
        }
        let domain = ascii_domain(domain).ok_or(InvalidEmail::Domain)?;
        let key = format!("{}@{domain}", local.to_ascii_lowercase());
        if key.len() > limits::MAX_EMAIL_CHARS {
            return Err(InvalidEmail::TooLongInAscii(key.len()));
        }
        Ok(Self { typed: typed.to_owned(), key })
    }

    /// Restores an address from the database. It was valid when it was stored, and is not checked again: the rules may
    /// have changed since, and a row must not become unreadable. `key` is its normalized form as stored.
    pub fn from_stored(typed: impl Into<String>, key: impl Into<String>) -> Self {
        Self { typed: typed.into(), key: key.into() }
    }

    pub fn as_typed(&self) -> &str {
        &self.typed
    }

    /// The normalized address, which is equal for all spellings: lower case, domain in ASCII.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The address as typed, but with the domain in ASCII, which every mail server accepts.
    pub fn in_ascii(&self) -> String {
        match self.typed.split_once('@') {
            Some((local, domain)) if !domain.is_ascii() => format!("{local}@{}", self.domain()),
            _ => self.typed.clone(),
        }
    }

    /// The normalized plain address of the mailbox that this address leads to on most mail servers: without what follows a `+`
    /// before the @, and at Gmail without dots and under one domain.
    pub fn mailbox(&self) -> String {
        let Some((local, domain)) = self.key.split_once('@') else { return self.key.clone() };
        let name = local.split_once('+').map_or(local, |(name, _)| if name.is_empty() { local } else { name });
        if ["gmail.com", "googlemail.com"].contains(&domain) {
            format!("{}@gmail.com", name.replace('.', ""))
        } else {
            format!("{name}@{domain}")
        }
    }

    /// The mailbox, if that is another address.
    pub fn other_mailbox(&self) -> Option<String> {
        Some(self.mailbox()).filter(|mailbox| *mailbox != self.key)
    }

    /// Whether something follows a `+` before the @.
    pub fn has_tag(&self) -> bool {
        self.key.split_once('@').is_some_and(|(local, _)| local.find('+').is_some_and(|at| at > 0))
    }

    /// The domain, in lower case and ASCII.
    pub fn domain(&self) -> &str {
        self.key.split_once('@').map_or("", |(_, domain)| domain)
    }
}

const fn is_atom_character(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(c, '!' | '#'..='\'' | '*' | '+' | '-' | '/' | '=' | '?' | '^'..='`' | '{'..='~')
}

/// Names a character, so that also one that looks like another, or like nothing, is recognized.
fn named(c: char) -> String {
    match c {
        ' ' => "a space".to_owned(),
        c if c.is_ascii_graphic() => format!("“{c}”"),
        c if c.is_whitespace() || is_invisible(c) || is_joiner(c) => format!("U+{:04X}", u32::from(c)),
        c => format!("“{c}” (U+{:04X})", u32::from(c)),
    }
}

/// Converts a domain to lower-case ASCII. Returns `None` if IDNA rejects it or it has a single label.
fn ascii_domain(domain: &str) -> Option<String> {
    let ascii = Uts46::new()
        .to_ascii(domain.as_bytes(), AsciiDenyList::STD3, Hyphens::CheckFirstLast, DnsLength::Verify)
        .ok()?;
    ascii.contains('.').then(|| ascii.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_that_differ_after_a_plus_have_one_mailbox() {
        let mailbox = |typed| EmailAddress::parse(typed).unwrap().mailbox();
        for typed in ["Ada@Example.com", "ada+1@example.com", "ADA+a+b@example.COM"] {
            assert_eq!(mailbox(typed), "ada@example.com", "{typed}");
            assert_eq!(EmailAddress::parse(typed).unwrap().has_tag(), typed.contains('+'), "{typed}");
        }
        assert_eq!(mailbox("+ada@example.com"), "+ada@example.com", "nothing would be left");
        assert!(!EmailAddress::parse("+ada@example.com").unwrap().has_tag());
    }

    #[test]
    fn gmail_ignores_dots_and_has_two_domains() {
        let mailbox = |typed| EmailAddress::parse(typed).unwrap().mailbox();
        for typed in ["adalovelace@gmail.com", "Ada.Lovelace@googlemail.com", "a.d.a.lovelace+x.y@gmail.com"] {
            assert_eq!(mailbox(typed), "adalovelace@gmail.com", "{typed}");
        }
        assert_eq!(mailbox("ada.lovelace@example.com"), "ada.lovelace@example.com");
    }

    #[test]
    fn an_address_that_no_mail_server_takes_because_its_ascii_form_is_too_long_is_refused() {
        let parse = |local: &str| EmailAddress::parse(&format!("{local}@{}example", "é.".repeat(30)));
        assert_eq!(parse("ada.lo").unwrap().key().len(), 254);
        assert_eq!(parse("ada.lov"), Err(InvalidEmail::TooLongInAscii(255)));
    }

    #[test]
    fn ordinary_and_odd_addresses_are_accepted() {
        for typed in [
            "a@b.co",
            "First.Last+tag@Example.COM",
            "o'brien!#$%&*/=?^_`{|}~-@example.org",
            "x@ab--cd.example",
            "x@münchen.example",
            "x@例え.テスト",
            "x@xn--mnchen-3ya.example",
            "x@1.2",
        ] {
            assert!(EmailAddress::parse(typed).is_ok(), "{typed}");
        }
    }

    #[test]
    fn invalid_addresses_are_rejected() {
        for typed in [
            "",
            "@",
            "a@",
            "@b.co",
            "a.b.co",
            "a@b",
            "a@@b.co",
            "a@b@c.co",
            ".a@b.co",
            "a.@b.co",
            "a..b@c.co",
            " a@b.co",
            "a@b.co ",
            "a@b.co\n",
            "a@b.co.",
            "a@.b.co",
            "a@b..co",
            "a@-b.co",
            "a@b-.co",
            "a@b_c.co",
            "a@[127.0.0.1]",
            "\"a b\"@c.co",
            "Ann <a@b.co>",
            "a@b.co (home)",
            "ä@b.co",
            "a\0@b.co",
            "a@xn--.co",
            "a@b.co,c@d.co",
        ] {
            assert!(EmailAddress::parse(typed).is_err(), "{typed:?}");
        }
    }

    #[test]
    fn the_broken_rule_is_named() {
        for (typed, rule) in [
            (" ada@example.com", "there is a space or a line break before or after it"),
            ("ada@example.com\n", "there is a space or a line break before or after it"),
            ("ada.example.com", "it needs exactly one @"),
            ("ada@example@example.com", "it needs exactly one @"),
            ("@example.com", "nothing stands before the @"),
            ("ada@", "nothing stands after the @"),
            ("andré@example.com", "“é” (U+00E9) is not allowed before the @"),
            ("Ada <ada@example.com>", "a space is not allowed before the @"),
            ("\"ada\"@example.com", "“\"” is not allowed before the @"),
            ("a\u{200b}da@example.com", "U+200B is not allowed before the @"),
            ("a\u{0}da@example.com", "U+0000 is not allowed before the @"),
            ("ada..l@example.com", "two dots in a row"),
            ("ada@example", "not a domain name"),
        ] {
            let why = EmailAddress::parse(typed).unwrap_err().to_string();
            assert!(why.contains(rule), "{typed:?}: {why}");
        }
    }

    #[test]
    fn lengths_are_counted_as_published() {
        let local = "l".repeat(64);
        assert!(EmailAddress::parse(&format!("{local}@b.co")).is_ok());
        assert_eq!(EmailAddress::parse(&format!("l{local}@b.co")), Err(InvalidEmail::LocalPartTooLong));

        let label = "d".repeat(63);
        let longest = format!("{local}@{label}.{label}.{}", "d".repeat(61));
        assert_eq!(longest.len(), 254);
        assert!(EmailAddress::parse(&longest).is_ok());
        assert_eq!(EmailAddress::parse(&format!("{longest}d")), Err(InvalidEmail::TooLong(255)));
        assert_eq!(EmailAddress::parse(&format!("a@{label}d.co")), Err(InvalidEmail::Domain));
    }

    #[test]
    fn spellings_of_one_address_share_a_key() {
        let key = |typed| EmailAddress::parse(typed).unwrap().key;
        assert_eq!(key("Ann@Example.com"), key("ann@eXample.COM"));
        assert_eq!(key("a@MÜNCHEN.example"), key("A@xn--mnchen-3ya.example"));
        assert_ne!(key("a.b@example.com"), key("ab@example.com"));
    }

    #[test]
    fn the_ascii_form_has_the_domain_in_ascii() {
        let in_ascii = |typed| EmailAddress::parse(typed).unwrap().in_ascii();
        assert_eq!(in_ascii("Ann@MÜNCHEN.example"), "Ann@xn--mnchen-3ya.example");
        assert_eq!(in_ascii("Ann@Example.com"), "Ann@Example.com");
    }

    fn pattern() -> fancy_regex::Regex {
        fancy_regex::Regex::new(PATTERN).unwrap()
    }

    proptest! {
        #[test]
        fn pattern_and_parser_agree_on_ascii(typed in r"[ -~]{0,4}([a-z.-]{0,66}@)?[A-Za-z0-9._-]{0,66}(\.[a-z-]{1,4})?") {
            prop_assume!(!typed.to_ascii_lowercase().contains("xn--"));
            prop_assert_eq!(pattern().is_match(&typed).unwrap(), EmailAddress::parse(&typed).is_ok());
        }

        #[test]
        fn the_pattern_matches_every_valid_address(typed in r"[a-z.]{1,5}@[\PC]{1,12}\.[\PCa-z]{1,5}") {
            if EmailAddress::parse(&typed).is_ok() {
                prop_assert!(pattern().is_match(&typed).unwrap());
            }
        }
    }
}
