//! A question to a name server and its answer, as bytes (RFC 1035, RFC 6891).
//!
//! An answer is read once from front to back: names in it are stepped over and never followed, so
//! that none can lead in circles.

/// The longest answer that we take in one datagram; it gets through every network unbroken.
const LONGEST_DATAGRAM: u16 = 1232;
const INTERNET: u16 = 1;
const OPTIONS: u16 = 41;

const IS_ANSWER: u16 = 0x8000;
const OPERATION: u16 = 0x7800;
const FROM_THE_SOURCE: u16 = 0x0400;
const TRUNCATED: u16 = 0x0200;
const ASK_OTHERS: u16 = 0x0100;
const ASKS_OTHERS: u16 = 0x0080;
const OUTCOME: u16 = 0x000F;

/// What is asked for, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Ipv4 = 1,
    MailServer = 15,
    Text = 16,
    Ipv6 = 28,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    id: u16,
    /// As it travels: each label after its length, and an empty one at the end.
    name: Vec<u8>,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The contents of the records that were asked for.
    Records(Vec<Vec<u8>>),
    NoSuchName,
    /// There is more than a datagram holds: it has to be asked over TCP.
    Truncated,
    /// The server cannot or will not say.
    Declined(String),
}

impl Question {
    /// `None` if no name can be that long, so that nothing can be there either.
    pub(super) fn new(id: u16, name: &str, kind: Kind) -> Option<Self> {
        let mut bytes = Vec::new();
        for label in name.split('.') {
            bytes.push(u8::try_from(label.len()).ok().filter(|length| (1..=63).contains(length))?);
            bytes.extend(label.as_bytes());
        }
        bytes.push(0);
        (bytes.len() <= 255).then_some(Self { id, name: bytes, kind })
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let counts = [1, 0, 0, 1];
        let head = [self.id, ASK_OTHERS].into_iter().chain(counts).flat_map(u16::to_be_bytes);
        let about = [self.kind as u16, INTERNET].into_iter().flat_map(u16::to_be_bytes);
        // The root's name, what we can take, and no option at all.
        let options = [OPTIONS, LONGEST_DATAGRAM, 0, 0, 0].into_iter().flat_map(u16::to_be_bytes);
        head.chain(self.name.iter().copied()).chain(about).chain([0]).chain(options).collect()
    }

    /// `None`: that is no answer to this question.
    pub(super) fn answer(&self, bytes: &[u8]) -> Option<Answer> {
        let mut rest = Rest(bytes);
        let (id, flags) = (rest.number()?, rest.number()?);
        let [questions, answers, _, _] = [rest.number()?, rest.number()?, rest.number()?, rest.number()?];
        if id != self.id || flags & IS_ANSWER == 0 || flags & OPERATION != 0 || questions != 1 {
            return None;
        }
        let name = rest.take(self.name.len())?;
        if !name.eq_ignore_ascii_case(&self.name) || (rest.number()?, rest.number()?) != (self.kind as u16, INTERNET) {
            return None;
        }
        match flags & OUTCOME {
            0 if flags & TRUNCATED != 0 => Some(Answer::Truncated),
            0 if answers == 0 && flags & (FROM_THE_SOURCE | ASKS_OTHERS) == 0 => {
                Some(Answer::Declined("it only answers for others".to_owned()))
            }
            0 => Some(Answer::Records(self.records(rest, answers)?)),
            3 => Some(Answer::NoSuchName),
            outcome => Some(Answer::Declined(outcome_name(outcome))),
        }
    }

    /// Records of another kind are those of other names that the name stands for.
    fn records(&self, mut rest: Rest<'_>, count: u16) -> Option<Vec<Vec<u8>>> {
        let mut records = Vec::new();
        for _ in 0..count {
            rest.step_over_name()?;
            let about = (rest.number()?, rest.number()?);
            let _seconds_to_live = rest.take(4)?;
            let length = rest.number()?;
            let content = rest.take(length.into())?;
            if about == (self.kind as u16, INTERNET) {
                records.push(content.to_vec());
            }
        }
        Some(records)
    }
}

/// What a TXT record says: its pieces, put together.
pub(super) fn text(record: &[u8]) -> Option<String> {
    let (mut rest, mut text) = (Rest(record), Vec::new());
    while let Some(&[length]) = rest.take(1) {
        text.extend(rest.take(length.into())?);
    }
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Whether an MX record says that no mail is taken (RFC 7505): it names the root.
pub(super) fn takes_no_mail(record: &[u8]) -> bool {
    record.get(2..) == Some(&[0])
}

fn outcome_name(outcome: u16) -> String {
    match outcome {
        1 => "FORMERR".to_owned(),
        2 => "SERVFAIL".to_owned(),
        4 => "NOTIMP".to_owned(),
        5 => "REFUSED".to_owned(),
        other => format!("error {other}"),
    }
}

/// What of an answer has not been read.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u16::from_be_bytes(*number))
    }

    /// Labels up to the empty one, or up to a reference to what came before.
    fn step_over_name(&mut self) -> Option<()> {
        loop {
            match self.take(1)? {
                [0] => return Some(()),
                [length @ 1..=63] => self.take(usize::from(*length))?,
                [0xC0..=0xFF] => return self.take(1).map(drop),
                _ => return None,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use simple_dns::rdata::{CNAME, MX, RData, TXT};
    use simple_dns::{CLASS, Name, Packet, PacketFlag, QTYPE, RCODE, ResourceRecord, TYPE};

    use super::*;

    const ID: u16 = 0x1234;

    fn question(kind: Kind) -> Question {
        Question::new(ID, "mail.troupe.example", kind).unwrap()
    }

    /// An answer as another implementation writes it.
    fn reply<'a>(question: &'a [u8], records: &[(&'a str, RData<'a>)]) -> Packet<'a> {
        let mut packet = Packet::parse(question).unwrap().into_reply();
        packet.set_flags(PacketFlag::RECURSION_AVAILABLE);
        for (name, data) in records {
            packet.answers.push(ResourceRecord::new(Name::new(name).unwrap(), CLASS::IN, 60, data.clone()));
        }
        packet
    }

    fn text_reply() -> Vec<u8> {
        let pieces = TXT::new().with_string("v=spf1 include:troupe.exa").unwrap().with_string("mple -all").unwrap();
        let other = RData::TXT(TXT::new().with_string("something else").unwrap());
        let alias = RData::CNAME(CNAME(Name::new("alias.troupe.example").unwrap()));
        let (name, target) = ("mail.troupe.example", "alias.troupe.example");
        let asked = question(Kind::Text).bytes();
        let records = [(name, alias), (target, RData::TXT(pieces)), (target, other)];
        reply(&asked, &records).build_bytes_vec_compressed().unwrap()
    }

    fn texts(answer: Option<Answer>) -> Vec<String> {
        let Some(Answer::Records(records)) = answer else { panic!("{answer:?}") };
        records.iter().map(|record| text(record).unwrap()).collect()
    }

    #[test]
    fn others_read_our_question_as_meant() {
        let bytes = question(Kind::MailServer).bytes();
        let packet = Packet::parse(&bytes).unwrap();
        assert_eq!((packet.id(), packet.questions.len()), (ID, 1));
        assert!(packet.has_flags(PacketFlag::RECURSION_DESIRED) && !packet.has_flags(PacketFlag::RESPONSE));
        assert_eq!(packet.questions[0].qname.to_string(), "mail.troupe.example");
        assert_eq!(packet.questions[0].qtype, QTYPE::TYPE(TYPE::MX));
        assert_eq!(packet.opt().map(|options| (options.udp_packet_size, options.version)), Some((1232, 0)));
    }

    #[test]
    fn an_answer_holds_what_was_asked_for_with_its_pieces_put_together() {
        let expected = ["v=spf1 include:troupe.example -all", "something else"];
        assert_eq!(texts(question(Kind::Text).answer(&text_reply())), expected);
    }

    #[test]
    fn a_name_of_another_case_is_the_same_name() {
        let asked = Question::new(ID, "Mail.TROUPE.example", Kind::Text).unwrap();
        assert_eq!(texts(asked.answer(&text_reply())).len(), 2);
    }

    #[test]
    fn what_answers_another_question_is_no_answer() {
        let bytes = text_reply();
        let name = "mail.troupe.example";
        for other in [
            Question::new(ID + 1, name, Kind::Text),
            Question::new(ID, "mail.trouve.example", Kind::Text),
            Question::new(ID, name, Kind::MailServer),
        ] {
            assert_eq!(other.unwrap().answer(&bytes), None);
        }
        assert_eq!(question(Kind::Text).answer(&question(Kind::Text).bytes()), None, "a question is no answer");
        for length in 0..bytes.len() {
            assert_eq!(question(Kind::Text).answer(&bytes[..length]), None, "cut after {length}");
        }
    }

    #[test]
    fn what_the_server_did_is_told_apart() {
        let asked = question(Kind::Text).bytes();
        let outcome = |flags, code| {
            let mut packet = Packet::parse(&asked).unwrap().into_reply();
            packet.set_flags(flags);
            *packet.rcode_mut() = code;
            question(Kind::Text).answer(&packet.build_bytes_vec().unwrap()).unwrap()
        };
        let recursive = PacketFlag::RECURSION_AVAILABLE;
        assert_eq!(outcome(recursive, RCODE::NoError), Answer::Records(Vec::new()));
        assert_eq!(outcome(PacketFlag::AUTHORITATIVE_ANSWER, RCODE::NoError), Answer::Records(Vec::new()));
        assert_eq!(outcome(recursive | PacketFlag::TRUNCATION, RCODE::NoError), Answer::Truncated);
        assert_eq!(outcome(recursive, RCODE::NameError), Answer::NoSuchName);
        assert_eq!(outcome(recursive, RCODE::ServerFailure), Answer::Declined("SERVFAIL".to_owned()));
        let Answer::Declined(_) = outcome(PacketFlag::empty(), RCODE::NoError) else {
            panic!("who neither knows nor asks has not answered")
        };
    }

    #[test]
    fn the_root_takes_no_mail() {
        let asked = question(Kind::MailServer).bytes();
        for (exchange, closed) in [(".", true), ("mx.troupe.example", false)] {
            let record = RData::MX(MX { preference: 0, exchange: Name::new(exchange).unwrap() });
            let bytes = reply(&asked, &[("mail.troupe.example", record)]).build_bytes_vec().unwrap();
            let Some(Answer::Records(records)) = question(Kind::MailServer).answer(&bytes) else { panic!("{bytes:?}") };
            assert_eq!(records.iter().map(|record| takes_no_mail(record)).collect::<Vec<_>>(), [closed]);
        }
    }

    #[test]
    fn what_cannot_be_a_name_is_not_asked_for() {
        let long = vec!["a".repeat(63); 4].join(".");
        for name in ["", ".", "a..b", "a.", &"a".repeat(64), &long] {
            assert_eq!(Question::new(ID, name, Kind::Text), None, "{name}");
        }
        assert!(Question::new(ID, &long[..253], Kind::Text).is_some());
    }

    proptest! {
        #[test]
        fn any_bytes_at_all_are_read_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = question(Kind::Text).answer(&bytes);
            let _ = text(&bytes);
            let _ = takes_no_mail(&bytes);
        }

        #[test]
        fn so_is_an_answer_with_any_of_its_bytes_changed(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)
        ) {
            let mut bytes = text_reply();
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            if let Some(Answer::Records(records)) = question(Kind::Text).answer(&bytes) {
                prop_assert!(records.iter().map(Vec::len).sum::<usize>() < bytes.len());
            }
        }
    }
}
