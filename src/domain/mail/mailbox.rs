//! The sender or recipient of a mail: an address with an optional display name.

use std::fmt;

use super::email::EmailAddress;
use crate::domain::parse::Invalid;

/// `hello@troupe.example`, or `Troupe <hello@troupe.example>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mailbox {
    name: Option<String>,
    email: EmailAddress,
}

impl Mailbox {
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let text = text.trim();
        let parse =
            |email| EmailAddress::parse(email).map_err(|why| Invalid::new(format!("the address is invalid: {why}")));
        let Some(inner) = text.strip_suffix('>') else {
            return Ok(Self { name: None, email: parse(text)? });
        };
        let (name, email) = inner
            .rsplit_once('<')
            .ok_or_else(|| Invalid::new("it is neither an address nor of the form Name <name@example.com>"))?;
        let name = name.trim();
        let name = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name);
        if name.contains(|c: char| c.is_control() || matches!(c, '"' | '<' | '>')) {
            return Err(Invalid::new(
                "the name before the address must not contain control characters, quotes or angle brackets",
            ));
        }
        let name = (!name.is_empty()).then(|| name.to_owned());
        Ok(Self { name, email: parse(email)? })
    }

    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub const fn email(&self) -> &EmailAddress {
        &self.email
    }
}

impl fmt::Display for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name} <{}>", self.email.as_typed()),
            None => f.write_str(self.email.as_typed()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_precede_the_address() {
        for (text, shown) in [
            ("hello@troupe.example", "hello@troupe.example"),
            (" <hello@troupe.example> ", "hello@troupe.example"),
            ("Troupe <hello@troupe.example>", "Troupe <hello@troupe.example>"),
            ("\"Troupe, the makers\" <hello@troupe.example>", "Troupe, the makers <hello@troupe.example>"),
        ] {
            assert_eq!(Mailbox::parse(text).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn anything_but_one_mailbox_is_rejected() {
        for text in [
            "",
            "Troupe",
            "Troupe <hello>",
            "hello@troupe.example>",
            "hello@troupe.example, makers@troupe.example",
            "A <a@b.example>, B <b@b.example>",
            "Troupe\r\nBcc: x@b.example <hello@troupe.example>",
        ] {
            assert!(Mailbox::parse(text).is_err(), "{text}");
        }
    }
}
