//! A little name server that answers from a list, over UDP and TCP, as badly as a test wants.
//!
//! It writes and reads messages by a library of its own: what it understands is not only what we say.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use simple_dns::rdata::{A, CNAME, MX, OPT, RData, TXT};
use simple_dns::{CLASS, Name, Packet, PacketFlag, QTYPE, Question, RCODE, ResourceRecord};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    Truthful,
    /// Answers to other questions, of other servers and nonsense come before its own.
    Crowded,
    /// Forgets the first question of each kind.
    Forgetful,
    Silent,
    Failing,
}

pub struct NameServer {
    address: SocketAddr,
    over_tcp: Arc<AtomicUsize>,
}

#[derive(Clone)]
struct Zone {
    manner: Manner,
    records: Arc<Vec<ResourceRecord<'static>>>,
}

pub fn txt(text: &str) -> RData<'static> {
    RData::TXT(TXT::try_from(text).expect("a text").into_owned())
}

pub fn mx(exchange: &str) -> RData<'static> {
    RData::MX(MX { preference: 10, exchange: Name::new(exchange).expect("a name").into_owned() })
}

pub fn a() -> RData<'static> {
    RData::A(A { address: 0x7F00_0001 })
}

pub fn cname(target: &str) -> RData<'static> {
    RData::CNAME(CNAME(Name::new(target).expect("a name").into_owned()))
}

impl NameServer {
    pub fn start(records: &[(&str, RData<'static>)]) -> Self {
        Self::start_as(Manner::Truthful, records)
    }

    pub fn start_as(manner: Manner, records: &[(&str, RData<'static>)]) -> Self {
        let record = |(name, data): &(&str, RData<'static>)| {
            ResourceRecord::new(Name::new(name).expect("a name").into_owned(), CLASS::IN, 60, data.clone())
        };
        let zone = Zone { manner, records: Arc::new(records.iter().map(record).collect()) };
        let (datagrams, connections) = std::iter::repeat_with(|| {
            let datagrams = UdpSocket::bind("127.0.0.1:0").expect("a socket");
            let connections = TcpListener::bind(datagrams.local_addr().expect("an address"));
            connections.ok().map(|connections| (datagrams, connections))
        })
        .flatten()
        .next()
        .expect("a port that is free for both");
        let address = datagrams.local_addr().expect("an address");
        let over_tcp = Arc::new(AtomicUsize::new(0));
        let (other, count) = (zone.clone(), over_tcp.clone());
        thread::spawn(move || zone.answer_datagrams(&datagrams));
        thread::spawn(move || other.answer_connections(&connections, &count));
        Self { address, over_tcp }
    }

    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// How often it was asked over TCP.
    pub fn asked_over_tcp(&self) -> usize {
        self.over_tcp.load(Ordering::SeqCst)
    }
}

impl Zone {
    fn answer_datagrams(&self, socket: &UdpSocket) {
        let (stranger, mut seen) = (UdpSocket::bind("127.0.0.1:0").expect("a socket"), Vec::new());
        let mut bytes = [0; 4096];
        loop {
            let (length, from) = socket.recv_from(&mut bytes).expect("a question");
            let query = Packet::parse(&bytes[..length]).expect("a question that others understand");
            let room = query.opt().map_or(512, |options| options.udp_packet_size).into();
            let send = |socket: &UdpSocket, bytes: &[u8]| socket.send_to(bytes, from).expect("to be sent");
            match self.manner {
                Manner::Silent => continue,
                Manner::Crowded => {
                    let nothing = Zone { manner: Manner::Truthful, records: Arc::default() };
                    let mut other = query.clone();
                    other.set_id(query.id().wrapping_add(1));
                    send(socket, &nothing.answer(&other, room));
                    let mut other = query.clone();
                    let neighbour = format!("x{}", &query.questions[0].qname.to_string()[1..]);
                    other.questions[0].qname = Name::new(&neighbour).expect("a name");
                    send(socket, &nothing.answer(&other, room));
                    send(socket, b"nonsense");
                    let whole = nothing.answer(&query, room);
                    send(socket, &whole[..whole.len() / 2]);
                    send(&stranger, &whole);
                }
                Manner::Forgetful if !seen.contains(&format!("{:?}", query.questions)) => {
                    seen.push(format!("{:?}", query.questions));
                    continue;
                }
                Manner::Truthful | Manner::Forgetful | Manner::Failing => {}
            }
            send(socket, &self.answer(&query, room));
        }
    }

    fn answer_connections(&self, listener: &TcpListener, count: &AtomicUsize) {
        for connection in listener.incoming() {
            count.fetch_add(1, Ordering::SeqCst);
            let mut connection = connection.expect("a connection");
            let mut length = [0; 2];
            connection.read_exact(&mut length).expect("a length");
            let mut query = vec![0; u16::from_be_bytes(length).into()];
            connection.read_exact(&mut query).expect("a question");
            let answer = self.answer(&Packet::parse(&query).expect("a question"), u16::MAX.into());
            let length = u16::try_from(answer.len()).expect("a length").to_be_bytes();
            connection.write_all(&[&length[..], &answer].concat()).expect("to be sent");
        }
    }

    /// The whole answer, or that there is no room for it.
    fn answer(&self, query: &Packet<'_>, room: usize) -> Vec<u8> {
        let question = &query.questions[0];
        let mut reply = query.clone().into_reply();
        reply.set_flags(PacketFlag::RECURSION_AVAILABLE | PacketFlag::RECURSION_DESIRED);
        *reply.opt_mut() = Some(OPT { opt_codes: Vec::new(), udp_packet_size: 1232, version: 0 });
        if self.manner == Manner::Failing {
            *reply.rcode_mut() = RCODE::ServerFailure;
        } else if self.knows(&question.qname) {
            reply.answers = self.records(question, &question.qname);
        } else {
            *reply.rcode_mut() = RCODE::NameError;
        }
        let bytes = reply.build_bytes_vec_compressed().expect("an answer");
        if bytes.len() <= room {
            return bytes;
        }
        reply.answers.clear();
        reply.set_flags(PacketFlag::TRUNCATION);
        reply.build_bytes_vec_compressed().expect("an answer")
    }

    /// A name is there if anything is under it.
    fn knows(&self, name: &Name<'_>) -> bool {
        self.records.iter().any(|record| record.name == *name || record.name.is_subdomain_of(name))
    }

    fn records(&self, question: &Question<'_>, name: &Name<'_>) -> Vec<ResourceRecord<'static>> {
        let mut found = Vec::new();
        for record in self.records.iter().filter(|record| record.name == *name) {
            if let RData::CNAME(CNAME(target)) = &record.rdata {
                found.push(record.clone());
                found.extend(self.records(question, target));
            } else if question.qtype == QTYPE::TYPE(record.rdata.type_code()) {
                found.push(record.clone());
            }
        }
        found
    }
}
