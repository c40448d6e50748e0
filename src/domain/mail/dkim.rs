//! DKIM (RFC 6376): the selector of a key, the DNS record with its public key, and its comparison with what DNS has.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::domain::parse::{Invalid, text_types, word_enum};

/// The name of a key in DNS: the key of the selector `mail` is found at `mail._domainkey.troupe.example`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DkimSelector(String);

text_types!(DkimSelector);

impl DkimSelector {
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let is_label = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        if text.len() <= 100 && text.split('.').all(is_label) {
            Ok(Self(text.to_ascii_lowercase()))
        } else {
            Err(Invalid::new(
                "it is not a name such as `mail`: letters, digits and hyphens, in parts that dots separate",
            ))
        }
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

/// Longest string of a TXT record (RFC 1035).
const MAX_STRING_BYTES: usize = 255;
/// What precedes the bare key in the `SubjectPublicKeyInfo` of an RSA key of 2048 bits or more. RFC 6376 describes `p=`
/// as the bare key, and practice has the whole.
const RSA_HEADER_BYTES: usize = 24;

word_enum! {
    /// By its name in records and signatures.
    pub enum KeyKind {
        Rsa = "rsa",
        Ed25519 = "ed25519",
    }
}

/// The record of one key. `Display` is its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DkimRecord {
    pub kind: KeyKind,
    public_key: Vec<u8>,
}

/// How the records in DNS compare with the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordStatus {
    Same,
    /// The right key, but receivers are told to ignore it (`t=y`).
    SameAsTest,
    Missing,
    /// The number of records. It is undefined which one a receiver takes.
    Several(usize),
    /// The key was withdrawn (`p=` is empty).
    Revoked,
    Other,
}

impl DkimRecord {
    /// `public_key` is the `SubjectPublicKeyInfo` of an RSA key, or the 32 bytes of an Ed25519 key.
    pub const fn new(kind: KeyKind, public_key: Vec<u8>) -> Self {
        Self { kind, public_key }
    }

    /// The record for a zone file, in strings that are not too long. `name` may be relative to the zone.
    pub fn zone_file_lines(&self, name: &str) -> String {
        let text = self.to_string();
        let strings = text.as_bytes().chunks(MAX_STRING_BYTES).map(|string| String::from_utf8_lossy(string));
        let strings: Vec<_> = strings.map(|string| format!("  \"{string}\"")).collect();
        format!("{name} IN TXT (\n{} )", strings.join("\n"))
    }

    /// Compares the record with the TXT records that DNS has at its name.
    pub fn compare(&self, texts: &[String]) -> RecordStatus {
        let text = match texts {
            [] => return RecordStatus::Missing,
            [text] => text,
            several => return RecordStatus::Several(several.len()),
        };
        let tag = |name| tags(text).find_map(|(other, value)| (other == name).then_some(value));
        let is_other_version = tag("v").is_some_and(|version| version != "DKIM1");
        let key = tag("p").map(|key| key.replace(|c: char| c.is_ascii_whitespace(), ""));
        match key {
            Some(key) if key.is_empty() => RecordStatus::Revoked,
            Some(key) if !is_other_version && tag("k").unwrap_or("rsa") == self.kind.as_str() && self.has_key(&key) => {
                let is_test = tag("t").is_some_and(|flags| flags.split(':').any(|flag| flag.trim() == "y"));
                if is_test { RecordStatus::SameAsTest } else { RecordStatus::Same }
            }
            _ => RecordStatus::Other,
        }
    }

    fn has_key(&self, base64: &str) -> bool {
        let bare = match self.kind {
            KeyKind::Rsa => self.public_key.get(RSA_HEADER_BYTES..),
            KeyKind::Ed25519 => None,
        };
        STANDARD.decode(base64).is_ok_and(|key| key == self.public_key || Some(key.as_slice()) == bare)
    }
}

impl fmt::Display for DkimRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v=DKIM1; k={}; p={}", self.kind.as_str(), STANDARD.encode(&self.public_key))
    }
}

/// The tags of a record, as names and values.
fn tags(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split(';').filter_map(|tag| tag.split_once('=')).map(|(name, value)| (name.trim(), value.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_a_part_of_a_domain_name() {
        let selector = DkimSelector::parse("Mail.2026-11").unwrap();
        assert_eq!(selector.record_name("troupe.example"), "mail.2026-11._domainkey.troupe.example");
        for wrong in ["", ".", "a..b", "-a", "a-", "a_b", "a b", "ä", &"a".repeat(64), &["a"; 60].join(".")] {
            assert!(DkimSelector::parse(wrong).is_err(), "{wrong}");
        }
    }

    fn compare(record: &DkimRecord, texts: &[&str]) -> RecordStatus {
        record.compare(&texts.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn a_record_is_compared_by_its_key_however_it_is_written() {
        let record = DkimRecord::new(KeyKind::Rsa, (0..=255).cycle().take(294).collect());
        let key = STANDARD.encode(&record.public_key);
        let bare = STANDARD.encode(&record.public_key[24..]);
        assert_eq!(record.to_string(), format!("v=DKIM1; k=rsa; p={key}"));
        for same in [
            record.to_string(),
            format!("p={key}"),
            format!(" v = DKIM1 ;n=a note; t=s;p= {} {};", &key[..100], &key[100..]),
            format!("k=rsa;p={bare}"),
        ] {
            assert_eq!(compare(&record, &[&same]), RecordStatus::Same, "{same}");
        }
        assert_eq!(compare(&record, &[&format!("v=DKIM1; t=s:y; p={key}")]), RecordStatus::SameAsTest);
        assert_eq!(compare(&record, &[]), RecordStatus::Missing);
        assert_eq!(compare(&record, &["v=DKIM1; k=rsa; p="]), RecordStatus::Revoked);
        assert_eq!(compare(&record, &[&record.to_string(), "v=spf1 -all"]), RecordStatus::Several(2));
        for other in [
            "v=spf1 -all",
            "v=DKIM1; k=rsa; p=AAAA",
            "v=DKIM1; p=?",
            &format!("v=DKIM2; p={key}"),
            &format!("v=DKIM1; k=ed25519; p={key}"),
        ] {
            assert_eq!(compare(&record, &[other]), RecordStatus::Other, "{other}");
        }
        let ed25519 = DkimRecord::new(KeyKind::Ed25519, vec![7; 32]);
        assert_eq!(compare(&ed25519, &[&ed25519.to_string()]), RecordStatus::Same);
        assert_eq!(compare(&ed25519, &["p="]), RecordStatus::Revoked);
        let short = format!("k=ed25519; p={}", STANDARD.encode([7; 8]));
        assert_eq!(compare(&ed25519, &[&short]), RecordStatus::Other, "a part of a key is another key");
    }

    #[test]
    fn strings_of_a_zone_file_have_at_most_255_bytes_and_give_the_record() {
        let record = DkimRecord::new(KeyKind::Rsa, vec![1; 550]);
        let lines = record.zone_file_lines("mail._domainkey");
        assert!(lines.starts_with("mail._domainkey IN TXT (\n") && lines.ends_with("\" )"), "{lines}");
        let strings: Vec<_> = lines.split('"').skip(1).step_by(2).collect();
        assert!(strings.len() == 3 && strings.iter().all(|string| string.len() <= 255), "{lines}");
        assert_eq!(strings.concat(), record.to_string());
    }
}
