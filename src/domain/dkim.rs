//! The selector of a DKIM key (RFC 6376).

use std::fmt;

/// The name of a key in DNS: the key of the selector `mail` is found at `mail._domainkey.troupe.example`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DkimSelector(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not a name such as `mail`: letters, digits and hyphens, in parts that dots separate")]
pub struct InvalidSelector;

impl DkimSelector {
    pub fn parse(text: &str) -> Result<Self, InvalidSelector> {
        let is_label = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        if text.len() <= 100 && text.split('.').all(is_label) {
            Ok(Self(text.to_ascii_lowercase()))
        } else {
            Err(InvalidSelector)
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The DNS name of the record with the public key.
    pub fn record_name(&self, domain: &str) -> String {
        format!("{}.{domain}", self.relative_record_name())
    }

    /// The same name relative to the domain.
    pub fn relative_record_name(&self) -> String {
        format!("{self}._domainkey")
    }
}

impl fmt::Display for DkimSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_a_part_of_a_domain_name() {
        let selector = DkimSelector::parse("Mail.2026-11").unwrap();
        assert_eq!(selector.record_name("troupe.example"), "mail.2026-11._domainkey.troupe.example");
        for wrong in ["", ".", "a..b", "-a", "a-", "a_b", "a b", "ä", &"a".repeat(64), &["a"; 60].join(".")] {
            assert_eq!(DkimSelector::parse(wrong), Err(InvalidSelector), "{wrong}");
        }
    }
}
