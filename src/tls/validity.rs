//! From when until when a certificate is valid (RFC 5280, section 4.1), read from its DER encoding.
//!
//! rustls verifies the certificates of others but does not say when one's own expires.

use crate::domain::time::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Validity {
    pub not_before: Timestamp,
    pub not_after: Timestamp,
}

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

impl Validity {
    /// Returns `None` if the bytes are not a certificate.
    pub(super) fn read(certificate: &[u8]) -> Option<Self> {
        let certificate = Element::read(&mut &*certificate)?.contents(SEQUENCE)?;
        let mut fields = Element::read(&mut &*certificate)?.contents(SEQUENCE)?;
        if fields.first() == Some(&VERSION) {
            Element::read(&mut fields)?;
        }
        for _serial_number_and_algorithm_and_issuer in 0..3 {
            Element::read(&mut fields)?;
        }
        let mut validity = Element::read(&mut fields)?.contents(SEQUENCE)?;
        Some(Self {
            not_before: Element::read(&mut validity)?.time()?,
            not_after: Element::read(&mut validity)?.time()?,
        })
    }
}

/// A DER element.
struct Element<'a> {
    tag: u8,
    contents: &'a [u8],
}

impl<'a> Element<'a> {
    /// Reads the first element of the bytes, and removes it from them.
    fn read(bytes: &mut &'a [u8]) -> Option<Self> {
        let (tag, rest) = bytes.split_first()?;
        let (first, mut rest) = rest.split_first()?;
        let mut length = usize::from(*first);
        if *first >= 0x80 {
            let (digits, after) = rest.split_at_checked(usize::from(*first & 0x7f))?;
            length =
                digits.iter().try_fold(0_usize, |sum, digit| sum.checked_mul(256)?.checked_add((*digit).into()))?;
            rest = after;
        }
        let (contents, after) = rest.split_at_checked(length)?;
        *bytes = after;
        Some(Self { tag: *tag, contents })
    }

    fn contents(self, tag: u8) -> Option<&'a [u8]> {
        (self.tag == tag).then_some(self.contents)
    }

    fn time(self) -> Option<Timestamp> {
        let digits = std::str::from_utf8(self.contents).ok()?.strip_suffix('Z')?;
        let full = match self.tag {
            // Two digits of the year: 1950 to 2049.
            UTC_TIME => format!("{}{digits}", if digits.get(..2)? < "50" { "20" } else { "19" }),
            GENERALIZED_TIME => digits.to_owned(),
            _ => return None,
        };
        let part = |range: std::ops::Range<usize>| full.get(range);
        let text = format!(
            "{}-{}-{}T{}:{}:{}Z",
            part(0..4)?,
            part(4..6)?,
            part(6..8)?,
            part(8..10)?,
            part(10..12)?,
            part(12..14)?
        );
        Timestamp::parse(&text)
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    #[test]
    fn the_days_of_a_certificate_are_read_in_both_encodings() {
        for (from, to) in [((2026, 11, 16), (2027, 2, 14)), ((1999, 12, 31), (2051, 1, 2))] {
            let mut params = CertificateParams::new(vec!["troupe.example".to_owned()]).unwrap();
            params.not_before = date_time_ymd(from.0, from.1, from.2);
            params.not_after = date_time_ymd(to.0, to.1, to.2);
            let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
            let validity = Validity::read(certificate.der()).unwrap();
            let date = |(year, month, day)| format!("{year:04}-{month:02}-{day:02}");
            assert_eq!([validity.not_before.date(), validity.not_after.date()], [date(from), date(to)]);
        }
    }

    #[test]
    fn a_certificate_that_was_cut_short_has_no_validity() {
        let certified = rcgen::generate_simple_self_signed(vec!["a.example".to_owned()]).unwrap();
        let certificate = certified.cert.der();
        for length in 0..certificate.len() {
            assert_eq!(Validity::read(&certificate[..length]), None, "{length}");
        }
    }
}
