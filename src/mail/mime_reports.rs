//! Reads returned mails: delivery status notifications (RFC 3464), and the form in which qmail returns mail (QSBMF).
//!
//! Anybody can send such a mail, so nothing in it may do harm. Only the outermost parts are looked at: a report inside
//! another mail is not about a letter of ours, and parts can be nested without an end.

use mail_parser::{Message, MessageParser, MimeHeaders as _};

use crate::domain::letters::{BounceTag, RecipientReport, StatusCode};

/// The parts of a returned mail that matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReturnedMail {
    /// The tag of the copy that is returned.
    pub tag: Option<BounceTag>,
    /// Empty if the mail is no report about a delivery, such as an automatic reply.
    pub reports: Vec<RecipientReport>,
}

/// Headers that name the recipient of a mail, which for a returned mail is the envelope sender of the copy.
const RECIPIENT_HEADERS: [&str; 6] =
    ["To", "Delivered-To", "X-Original-To", "Envelope-To", "X-Envelope-To", "X-Delivered-To"];

impl ReturnedMail {
    /// Reads a mail, or as much of its beginning as there is. What is broken is left out.
    pub fn read(mail: &[u8]) -> Self {
        let mail = without_mbox_line(mail);
        let Some(headers) = MessageParser::default().parse_headers(mail) else { return Self::default() };
        let content_type = headers.content_type();
        let (returned_to, reports) = match content_type.map(|kind| (kind.ctype(), kind.subtype())) {
            Some(("multipart", Some("report"))) => {
                read_report(&parts(body(mail), content_type.and_then(|kind| kind.attribute("boundary"))))
            }
            None | Some(("text", Some("plain"))) => read_qsbmf(&decoded(mail)),
            Some(_) => (None, Vec::new()),
        };
        let named = RECIPIENT_HEADERS.iter().find_map(|name| tag_in_header(&headers, name));
        Self { tag: named.or(returned_to), reports }
    }
}

/// Reads the parts of a `multipart/report`: the tag in the returned headers, and the reports.
fn read_report(parts: &[&[u8]]) -> (Option<BounceTag>, Vec<RecipientReport>) {
    let (mut tag, mut reports) = (None, Vec::new());
    for part in parts {
        let Some(headers) = MessageParser::default().parse_headers(*part) else { continue };
        match headers.content_type().map(|kind| (kind.ctype(), kind.subtype())) {
            Some(("message", Some("delivery-status" | "global-delivery-status"))) => {
                reports.extend(fields(&decoded(part)).iter().filter_map(read_fields));
            }
            Some(("message", Some("rfc822" | "global"))) => tag = tag.or_else(|| tag_in_return_path(body(part))),
            Some(("text", Some("rfc822-headers")) | ("message", Some("global-headers"))) => {
                tag = tag.or_else(|| tag_in_return_path(decoded(part).as_bytes()));
            }
            _ => {}
        }
    }
    (tag, reports)
}

/// Splits the fields of a delivery status into its groups, of which the first is about the mail as a whole.
fn fields(status: &str) -> Vec<String> {
    let lines: Vec<_> = status.lines().map(str::trim_end).collect();
    lines.split(|line| line.is_empty()).map(|group| group.join("\n") + "\n").collect()
}

/// Reads one group of fields. Returns `None` if it is not about a recipient.
fn read_fields(group: &String) -> Option<RecipientReport> {
    let fields = MessageParser::default().parse_headers(group.as_bytes())?;
    let field = |name| fields.header_raw(name).map(str::trim);
    let smtp_reply = |diagnostic: &str| {
        let (kind, reply) = diagnostic.split_once(';')?;
        kind.trim().eq_ignore_ascii_case("smtp").then(|| StatusCode::of_reply(reply)).flatten()
    };
    Some(RecipientReport {
        has_failed: field("Action")?.eq_ignore_ascii_case("failed"),
        status: field("Status").and_then(StatusCode::at_start_of),
        reply: field("Diagnostic-Code").and_then(smtp_reply),
    })
}

/// Reads the text of a mail in the form of qmail: a first paragraph that introduces the program, one for each recipient
/// that failed, and a line that begins the returned mail. Codes are marked with a `#`.
fn read_qsbmf(text: &str) -> (Option<BounceTag>, Vec<RecipientReport>) {
    let text = text.replace("\r\n", "\n");
    if !text.starts_with("Hi. This is the") {
        return (None, Vec::new());
    }
    // Without this line the mail is incomplete.
    let Some((paragraphs, returned)) = text.split_once("\n\n-") else { return (None, Vec::new()) };
    let is_recipient = |paragraph: &&str| {
        paragraph.starts_with('<') && paragraph.lines().next().is_some_and(|line| line.ends_with(">:"))
    };
    let report = |paragraph: &str| RecipientReport {
        has_failed: true,
        status: paragraph.split('#').skip(1).find_map(StatusCode::at_start_of),
        reply: paragraph.lines().find_map(|line| StatusCode::of_reply(line.strip_prefix("Remote host said:")?)),
    };
    let reports = paragraphs.split("\n\n").map(|paragraph| paragraph.trim_start_matches('\n')).filter(is_recipient);
    (tag_in_return_path(body(returned.as_bytes())), reports.map(report).collect())
}

fn tag_in_return_path(mail: &[u8]) -> Option<BounceTag> {
    tag_in_header(&MessageParser::default().parse_headers(mail)?, "Return-Path")
}

fn tag_in_header(headers: &Message<'_>, name: &str) -> Option<BounceTag> {
    let values = headers.headers_raw().filter(|(other, _)| other.eq_ignore_ascii_case(name));
    values.map(|(_, value)| value).find_map(BounceTag::find_in)
}

/// Returns the text of a part that has no parts itself, with its transfer encoding removed.
fn decoded(part: &[u8]) -> String {
    let message = MessageParser::default().parse(part);
    let contents = message.as_ref().map_or(&[][..], |message| message.root_part().contents());
    String::from_utf8_lossy(contents).into_owned()
}

/// Returns what follows the first empty line.
fn body(mail: &[u8]) -> &[u8] {
    let mut rest = mail;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (line, after) = rest.split_at(end + 1);
        if line.trim_ascii().is_empty() {
            return after;
        }
        rest = after;
    }
    &[]
}

/// Splits the body of a multipart at its boundary. A part that no boundary follows is incomplete and left out.
fn parts<'a>(body: &'a [u8], boundary: Option<&str>) -> Vec<&'a [u8]> {
    let Some(boundary) = boundary.filter(|boundary| !boundary.is_empty()) else { return Vec::new() };
    let delimiter = format!("--{boundary}");
    let (mut parts, mut part_start, mut line_start) = (Vec::new(), None, 0);
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        let line_end = line_start + line.len();
        if let Some(after) = line.trim_ascii_end().strip_prefix(delimiter.as_bytes())
            && (after.is_empty() || after == b"--")
        {
            parts.extend(part_start.map(|start: usize| &body[start..line_start]));
            if after == b"--" {
                break;
            }
            part_start = Some(line_end);
        }
        line_start = line_end;
    }
    parts
}

/// Some mail servers put the first line of an mbox entry before the headers.
fn without_mbox_line(mail: &[u8]) -> &[u8] {
    match mail.iter().position(|byte| *byte == b'\n') {
        Some(end) if mail.starts_with(b"From ") => &mail[end + 1..],
        _ => mail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SAMPLE: &[u8] = include_bytes!("../../tests/service/bounces/postfix-unknown-mailbox.eml");

    #[test]
    fn a_part_without_an_end_is_left_out() {
        let parts_of = |body: &'static str| parts(body.as_bytes(), Some("b"));
        assert_eq!(parts_of("preamble\n--b\none\n--b\ntwo\n--b--\nepilogue\n--b\n"), [b"one\n", b"two\n"]);
        assert_eq!(parts_of("--b \r\none\n--bc\n--b--\n"), [b"one\n--bc\n"]);
        assert!(parts_of("--b\none\n").is_empty() && parts_of("").is_empty());
    }

    #[test]
    fn a_field_may_be_folded_and_written_in_any_case() {
        let group = "FINAL-recipient: rfc822; a@example.com\naction:\n Failed\nSTATUS: 5.0.0 (x)\n\
                     Diagnostic-Code: SMTP;\n 550-5.1.1 no\n such user\n";
        let report = read_fields(&group.to_owned()).unwrap();
        assert!(report.has_failed);
        assert_eq!(report.reply.unwrap().as_str(), "5.1.1");
        assert_eq!(read_fields(&"Reporting-MTA: dns; mx.example.com\n".to_owned()), None);
    }

    fn any_code() -> impl Strategy<Value = StatusCode> {
        let digits = (prop_oneof![Just(2), Just(4), Just(5)], 0..=999, 0..=999);
        digits.prop_map(|(class, subject, detail)| {
            StatusCode::at_start_of(&format!("{class}.{subject}.{detail}")).expect("a code")
        })
    }

    fn any_report() -> impl Strategy<Value = RecipientReport> {
        let parts = (any::<bool>(), prop::option::of(any_code()), prop::option::of(any_code()));
        parts.prop_map(|(has_failed, status, reply)| RecipientReport { has_failed, status, reply })
    }

    /// The fields of a delivery status about one recipient.
    fn written(report: &RecipientReport) -> String {
        let status = report.status.as_ref().map(|code| format!("Status: {}\n", code.as_str()));
        let reply = report.reply.as_ref().map(|code| format!("Diagnostic-Code: smtp; 550 {} no\n", code.as_str()));
        let action = if report.has_failed { "failed" } else { "delayed" };
        format!("Action: {action}\n{}{}", status.unwrap_or_default(), reply.unwrap_or_default())
    }

    proptest! {
        // Each case parses kilobytes.
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4))]

        #[test]
        fn a_report_is_read_whatever_text_is_around_it_and_not_at_all_if_it_is_cut_off(
            tag in any::<[u8; BounceTag::BYTES]>(),
            reports in proptest::collection::vec(any_report(), 1..4),
            text in "[ -~\\n]{0,200}",
            line_end in prop_oneof![Just("\n"), Just("\r\n")],
            cut in any::<prop::sample::Index>(),
        ) {
            let tag = BounceTag::from_random(tag);
            let head = format!(
                "To: bounces+{}@troupe.example\nContent-Type: multipart/report; boundary=\"b\"\n\n",
                tag.as_str()
            );
            let groups: Vec<_> = reports.iter().map(written).collect();
            let status = format!("Content-Type: message/delivery-status\n\nReporting-MTA: dns; a\n\n{}", groups.join("\n"));
            let body = format!("{text}\n--b\n\n{text}\n--b\n{status}\n--b");
            let lines = |mail: String| mail.replace('\n', line_end).into_bytes();
            let read = ReturnedMail::read(&lines(head.clone() + &body + "--\n" + &text));
            prop_assert_eq!(read, ReturnedMail { tag: Some(tag), reports });

            let cut_off = ReturnedMail::read(&lines(head + &body[..cut.index(body.len() - 1)]));
            prop_assert_eq!(cut_off.reports, []);
        }

        #[test]
        fn damage_to_the_text_before_a_report_changes_nothing_that_is_read(
            damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        ) {
            let place_of = |words: &str| SAMPLE.windows(words.len()).position(|part| part == words.as_bytes()).expect("it");
            let text = place_of("This is the mail system")..place_of("\n--903AE278.1794851993/mail.troupe.example\nContent-Description: Delivery");
            let mut mail = SAMPLE.to_vec();
            for (at, byte) in damage {
                let place = &mut mail[text.clone()][at.index(text.len())];
                // Lines stay lines, so that none becomes a boundary.
                if *place != b'\n' && !matches!(byte, b'\n' | b'-') {
                    *place = byte;
                }
            }
            let code = StatusCode::at_start_of("5.1.1");
            let report = RecipientReport { has_failed: true, status: code.clone(), reply: code };
            let tag = BounceTag::parse("0123456789abcdef0123456789abcdef");
            prop_assert_eq!(ReturnedMail::read(&mail), ReturnedMail { tag, reports: vec![report] });
        }

        #[test]
        fn random_bytes_are_read_without_a_panic_and_are_no_report(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            prop_assert_eq!(ReturnedMail::read(&bytes).reports, []);
        }
    }
}
