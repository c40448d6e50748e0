//! Undeliverable letters: the address that they are returned to, and what a returned mail says about the recipient.
//!
//! Knows neither MIME nor mail headers.

use super::letter::RandomToken;
use crate::domain::limits;
use crate::domain::mail::{EmailAddress, InvalidEmail};
use crate::domain::parse::{Invalid, text_types};

/// What separates the tag from the rest of the local part.
const SEPARATOR: char = '+';

/// The random part of the address that one copy of a letter is returned to. It cannot be guessed, so a mail to it comes
/// from somebody who has seen the copy.
pub type BounceTag = RandomToken<16>;

impl BounceTag {
    /// Finds the first address with a tag in a text, such as the value of a header.
    pub fn find_in(text: &str) -> Option<Self> {
        let is_delimiter = |c: char| c.is_whitespace() || matches!(c, '<' | '>' | ',' | ';' | ':' | '"' | '(' | ')');
        text.split(is_delimiter).find_map(|word| Self::parse(word.split_once('@')?.0.rsplit_once(SEPARATOR)?.1))
    }
}

/// The address that undeliverable letters are returned to. With a tag it is the envelope sender of one copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BounceAddress(EmailAddress);

impl BounceAddress {
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let address = Self(EmailAddress::parse(text).map_err(Invalid::new)?);
        if address.local_part().contains(SEPARATOR) {
            return Err(Invalid::new(
                "the part before the @ must not contain a +, because a + and a tag are added to it for each letter",
            ));
        }
        let tagged = address.tagged(&BounceTag::from_random([0; BounceTag::BYTES]));
        match EmailAddress::parse(tagged.as_typed()) {
            Ok(_) => Ok(address),
            Err(InvalidEmail::LocalPartTooLong) => {
                let max = limits::MAX_LOCAL_PART_BYTES - 1 - 2 * BounceTag::BYTES;
                Err(Invalid::new(format!(
                    "the part before the @ has more than {max} characters, so there is no room for the tag that is added to it"
                )))
            }
            Err(_) => Err(Invalid::new("it is too long for the tag that is added to it")),
        }
    }

    pub const fn email(&self) -> &EmailAddress {
        &self.0
    }

    /// The envelope sender of the copy with this tag, with the domain in ASCII.
    pub fn tagged(&self, tag: &BounceTag) -> EmailAddress {
        let (local, domain) = (self.local_part(), self.0.domain());
        let tagged = format!("{local}{SEPARATOR}{}@{domain}", tag.as_str());
        let key = tagged.to_ascii_lowercase();
        EmailAddress::from_stored(tagged, key)
    }

    fn local_part(&self) -> &str {
        self.0.as_typed().split_once('@').map_or("", |(local, _)| local)
    }
}

/// An enhanced status code (RFC 3463), such as 5.1.1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StatusCode(String);

text_types!(StatusCode);

impl StatusCode {
    /// Parses the code at the start of a text. Returns `None` if there is none.
    pub fn at_start_of(text: &str) -> Option<Self> {
        let text = text.trim_start();
        let code = text.split(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap_or_default();
        let parts: Vec<_> = code.split('.').collect();
        let has_form = matches!(parts[..], ["2" | "4" | "5", subject, detail]
            if [subject, detail].iter().all(|part| (1..=3).contains(&part.len())));
        has_form.then(|| Self(code.to_owned()))
    }

    /// Parses the code of an SMTP reply, such as `550 5.1.1 no such user`.
    pub fn of_reply(reply: &str) -> Option<Self> {
        let reply = reply.trim_start();
        let text = match reply.split_at_checked(3) {
            Some((digits, text)) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                text.strip_prefix([' ', '-']).unwrap_or(text)
            }
            _ => reply,
        };
        Self::at_start_of(text)
    }

    fn is_transient(&self) -> bool {
        self.0.starts_with('4')
    }

    /// Whether it says no more than that something failed for good.
    fn is_generic_failure(&self) -> bool {
        self.0 == "5.0.0"
    }
}

/// What a returned mail reports about one recipient of the mail that it returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecipientReport {
    /// Whether the mail server gave up. A delay, a relay or a delivery is no failure.
    pub has_failed: bool,
    pub status: Option<StatusCode>,
    /// The code in the reply of the recipient's mail server.
    pub reply: Option<StatusCode>,
}

/// A failure that counts. A milder one is less.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bounce {
    /// The mail server gave up after a while, such as for a full mailbox. The next letter may arrive.
    Transient(StatusCode),
    /// The mailbox does not exist.
    NoMailbox(StatusCode),
}

impl Bounce {
    /// Judges a returned mail. A copy of the letter has one recipient, but their mail server may have forwarded it to
    /// several: then the mildest report counts, and none if one of them is no failure.
    pub fn from_reports(reports: &[RecipientReport]) -> Option<Self> {
        reports.iter().map(Self::from_report).min().flatten()
    }

    fn from_report(report: &RecipientReport) -> Option<Self> {
        let status = report.status.as_ref().filter(|status| !status.is_generic_failure());
        let code = status.or(report.reply.as_ref()).filter(|_| report.has_failed)?;
        if code.is_transient() {
            Some(Self::Transient(code.clone()))
        } else {
            is_mailbox_rejection(code.as_str()).then(|| Self::NoMailbox(code.clone()))
        }
    }

    pub const fn code(&self) -> &StatusCode {
        let (Self::Transient(code) | Self::NoMailbox(code)) = self;
        code
    }

    /// Whether the address is never mailed again.
    pub const fn suppresses(&self) -> bool {
        matches!(self, Self::NoMailbox(_))
    }

    /// Whether it adds to what is stored already, given as a code. Only a mailbox that turns out not to exist replaces
    /// an earlier failure.
    pub fn adds_to(&self, stored: Option<&str>) -> bool {
        stored.is_none_or(|code| code.starts_with('4') && self.suppresses())
    }
}

/// The enhanced status codes (RFC 3463) of a rejection that is about the mailbox itself. Other codes of the class 5.1,
/// such as 5.1.7 and 5.1.8, are about the sender.
const MAILBOX_CODES: [&str; 5] = ["5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10"];

/// Whether a mail server's permanent rejection is about the mailbox itself, by the code at the start of the reply's
/// first line. Codes elsewhere in the text do not count.
pub fn is_mailbox_rejection(reply: &str) -> bool {
    reply.split([' ', '\t', '\r', '\n']).next().is_some_and(|code| MAILBOX_CODES.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn a_tag_is_found_in_every_form_of_an_address() {
        let address = format!("bounces+{TAG}@troupe.example");
        for text in [
            address.clone(),
            format!("<{address}>"),
            format!("Troupe <{address}>, other@troupe.example"),
            format!("other+x@troupe.example,{address}"),
            format!("rfc822; {address}"),
            format!("list+bounces+{TAG}@troupe.example"),
        ] {
            assert_eq!(BounceTag::find_in(&text), BounceTag::parse(TAG), "{text}");
        }
        for text in [
            String::new(),
            TAG.to_owned(),
            format!("bounces@{TAG}"),
            format!("bounces+{}@troupe.example", TAG.to_uppercase()),
            format!("bounces+{TAG}0@troupe.example"),
            format!("bounces+{}@troupe.example", &TAG[1..]),
            format!("bounces-{TAG}@troupe.example"),
            format!("bounces+{TAG} @troupe.example"),
        ] {
            assert_eq!(BounceTag::find_in(&text), None, "{text}");
        }
        assert!(!format!("{:?}", BounceTag::parse(TAG)).contains("0123"));
    }

    #[test]
    fn a_tagged_address_is_always_valid() {
        let tag = BounceTag::parse(TAG).unwrap();
        let address = BounceAddress::parse("Bounces@MÜNCHEN.example").unwrap();
        assert_eq!(address.tagged(&tag).as_typed(), format!("Bounces+{TAG}@xn--mnchen-3ya.example"));
        assert_eq!(BounceTag::find_in(address.tagged(&tag).as_typed()), Some(tag));

        let label = "d".repeat(63);
        let long_domain = |length| format!("b@{label}.{label}.{}", "d".repeat(length));
        for (text, error) in [
            ("bounces+all@troupe.example".to_owned(), "the part before the @ must not contain"),
            (format!("{}@troupe.example", "b".repeat(32)), "the part before the @ has more than 31"),
            (long_domain(63) + ".ddddddddddddddddddddddddddddddd", "it is too long"),
            ("bounces".to_owned(), "it needs exactly one @"),
        ] {
            assert!(BounceAddress::parse(&text).unwrap_err().to_string().starts_with(error), "{text}");
        }
        assert!(BounceAddress::parse(&format!("{}@troupe.example", "b".repeat(31))).is_ok());
        assert!(BounceAddress::parse(&long_domain(61)).is_ok());
    }

    #[test]
    fn a_code_is_read_from_the_start_of_a_status_and_after_the_number_of_a_reply() {
        let status = |text| StatusCode::at_start_of(text).map(|code| code.0);
        for text in ["5.1.1", " 5.1.1 (bad destination)", "5.1.1; x"] {
            assert_eq!(status(text).as_deref(), Some("5.1.1"), "{text}");
        }
        for text in ["", "5", "5.1", "5..1", "5.1.1.1", "3.1.1", "55.1.1", "5.1.1000", "x 5.1.1", "550 5.1.1"] {
            assert_eq!(status(text), None, "{text}");
        }
        let reply = |text| StatusCode::of_reply(text).map(|code| code.0);
        for text in ["550 5.1.1 no", "550-5.1.1 no", " 5.1.1 no", "550  5.1.1"] {
            assert_eq!(reply(text).as_deref(), Some("5.1.1"), "{text}");
        }
        for text in ["550 no such user", "550", "55", "no such user 5.1.1", "é50 5.1.1"] {
            assert_eq!(reply(text), None, "{text}");
        }
    }

    fn report(has_failed: bool, status: &str, reply: &str) -> RecipientReport {
        RecipientReport { has_failed, status: StatusCode::at_start_of(status), reply: StatusCode::of_reply(reply) }
    }

    #[test]
    fn only_a_failure_of_the_mailbox_suppresses_and_only_a_transient_one_is_counted_besides() {
        let judge = |has_failed, status, reply| Bounce::from_reports(&[report(has_failed, status, reply)]);
        let no_mailbox = |code: &str| Some(Bounce::NoMailbox(StatusCode(code.to_owned())));
        let transient = |code: &str| Some(Bounce::Transient(StatusCode(code.to_owned())));
        for (status, reply, bounce) in [
            ("5.1.1", "", no_mailbox("5.1.1")),
            ("5.1.10", "550 5.7.1 x", no_mailbox("5.1.10")),
            ("5.0.0", "550 5.1.1 x", no_mailbox("5.1.1")),
            ("", "550 5.1.2 x", no_mailbox("5.1.2")),
            ("4.2.2", "", transient("4.2.2")),
            ("5.0.0", "452 4.2.2 x", transient("4.2.2")),
            ("4.4.7", "550 5.1.1 x", transient("4.4.7")),
            ("5.7.1", "550 5.1.1 x", None),
            ("5.2.2", "", None),
            ("5.1.8", "", None),
            ("5.0.0", "550 no such user", None),
            ("", "", None),
            ("2.0.0", "", None),
        ] {
            assert_eq!(judge(true, status, reply), bounce, "{status} {reply}");
            assert_eq!(judge(false, status, reply), None, "{status} {reply}");
        }
    }

    #[test]
    fn of_several_reports_the_mildest_counts() {
        let (gone, full) = (report(true, "5.1.1", ""), report(true, "4.2.2", ""));
        let judge = |reports: &[&RecipientReport]| {
            Bounce::from_reports(&reports.iter().map(|report| (*report).clone()).collect::<Vec<_>>())
        };
        assert!(judge(&[&gone, &gone]).is_some_and(|bounce| bounce.suppresses()));
        assert!(judge(&[&gone, &full]).is_some_and(|bounce| !bounce.suppresses()));
        assert_eq!(judge(&[&gone, &report(false, "2.0.0", "")]), None, "it reached a mailbox");
        assert_eq!(judge(&[&full, &report(true, "5.7.1", "")]), None);
        assert_eq!(judge(&[]), None);
    }

    #[test]
    fn a_repeated_failure_adds_nothing() {
        let gone = Bounce::NoMailbox(StatusCode("5.1.1".to_owned()));
        let full = Bounce::Transient(StatusCode("4.2.2".to_owned()));
        assert!(gone.adds_to(None) && full.adds_to(None) && gone.adds_to(Some("4.2.2")));
        assert!(!gone.adds_to(Some("5.1.1")) && !full.adds_to(Some("4.2.2")) && !full.adds_to(Some("5.1.1")));
    }

    #[test]
    fn only_the_leading_code_of_a_reply_tells_that_the_mailbox_is_rejected() {
        for reply in
            ["5.1.1 no such user", "5.1.2 x", "5.1.3 x", "5.1.6 moved", "5.1.10 null MX", "5.1.1", "5.1.1\r\nx"]
        {
            assert!(is_mailbox_rejection(reply), "{reply}");
        }
        for reply in [
            "",
            "no such user",
            "5.1.0 x",
            "5.1.7 bad sender",
            "5.1.8 bad sender",
            "5.1.11 x",
            "5.1.100 x",
            "5.7.1 rejected, unlike 5.1.1",
            " 5.1.1 not at the start",
            "<ada@example.com>: 5.1.1 no such user",
            "4.1.1 later",
            "5.1.1.2 x",
        ] {
            assert!(!is_mailbox_rejection(reply), "{reply}");
        }
    }
}
