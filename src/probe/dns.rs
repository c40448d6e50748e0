//! A DNS client for `check`: looks up TXT, MX and address records, over TCP, which every name server speaks (RFC 7766) and on which
//! nothing is lost, cut or sent by somebody else.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, Question, RCODE, TYPE};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const PORT: u16 = 53;
/// The same limit as in glibc (`MAXNS`).
const MAX_SERVERS: usize = 3;
/// How long one server may take to respond to one query.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(3);

/// The name servers to query, in this order, until one responds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameServers(Vec<SocketAddr>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not an address such as 9.9.9.9, 127.0.0.1:5353 or [2620:fe::fe]:53")]
pub struct InvalidNameServer;

/// Why no server gave a usable response: the failure of the last one.
#[derive(Debug, thiserror::Error)]
pub enum DnsFailure {
    #[error("{0} did not respond in time")]
    Timeout(SocketAddr),
    #[error("{0} cannot be reached: {1}")]
    Unreachable(SocketAddr, io::Error),
    #[error("{0} responded with an error: {1}")]
    Error(SocketAddr, String),
}

/// Whether mail to a domain can be delivered, according to its MX records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MxStatus {
    /// The domain has a mail server or, without MX records, an address.
    Deliverable,
    /// The domain states that it accepts no mail (RFC 7505).
    NullMx,
    Missing,
    NoSuchDomain,
}

impl NameServers {
    /// Returns the servers in `/etc/resolv.conf`, or a server on this machine if there are none.
    pub fn from_system() -> Self {
        Self::from_resolv_conf(&std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default())
    }

    fn from_resolv_conf(file: &str) -> Self {
        let addresses = file.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let address = words.next().filter(|word| *word == "nameserver").and(words.next())?;
            Some(SocketAddr::new(address.parse().ok()?, PORT))
        });
        let servers: Vec<_> = addresses.take(MAX_SERVERS).collect();
        if servers.is_empty() {
            return Self(vec![SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT)]);
        }
        Self(servers)
    }

    /// Parses the IP address of one server, with an optional port.
    pub fn parse(text: &str) -> Result<Self, InvalidNameServer> {
        let server = text.parse().or_else(|_| text.parse().map(|address| SocketAddr::new(address, PORT)));
        server.map(|server| Self(vec![server])).map_err(|_| InvalidNameServer)
    }

    /// Returns the TXT records of a name, each as one string. There are none if the name does not
    /// exist.
    pub async fn txt_records(&self, name: &str) -> Result<Vec<String>, DnsFailure> {
        let records = self.lookup(name, TYPE::TXT).await?.unwrap_or_default();
        Ok(records.into_iter().filter_map(text).collect())
    }

    /// Finds out whether mail to a domain can be delivered.
    pub async fn mx_status(&self, domain: &str) -> Result<MxStatus, DnsFailure> {
        let Some(servers) = self.lookup(domain, TYPE::MX).await? else { return Ok(MxStatus::NoSuchDomain) };
        if !servers.is_empty() {
            return Ok(if servers.iter().all(is_null_mx) { MxStatus::NullMx } else { MxStatus::Deliverable });
        }
        let (ipv4, ipv6) = tokio::try_join!(self.lookup(domain, TYPE::A), self.lookup(domain, TYPE::AAAA))?;
        let has_address = [ipv4, ipv6].into_iter().flatten().any(|addresses| !addresses.is_empty());
        Ok(if has_address { MxStatus::Deliverable } else { MxStatus::Missing })
    }

    /// Returns the records of a name, or `None` if the name does not exist.
    async fn lookup(&self, name: &str, record_type: TYPE) -> Result<Option<Vec<RData<'static>>>, DnsFailure> {
        // One that is too long for a domain name cannot exist.
        let Some(query) = query(name, record_type) else { return Ok(None) };
        let mut failure = None;
        for server in &self.0 {
            failure = Some(match timeout(RESPONSE_TIMEOUT, send_query(*server, &query)).await {
                Ok(Ok(response)) => match records(&response, record_type) {
                    Ok(records) => return Ok(records),
                    Err(error) => DnsFailure::Error(*server, error),
                },
                Ok(Err(error)) => DnsFailure::Unreachable(*server, error),
                Err(_) => DnsFailure::Timeout(*server),
            });
        }
        failure.map_or(Ok(None), Err)
    }
}

fn query(name: &str, record_type: TYPE) -> Option<Packet<'_>> {
    let mut query = Packet::new_query(0);
    query.set_flags(PacketFlag::RECURSION_DESIRED);
    query.questions.push(Question::new(Name::new(name).ok()?, record_type.into(), CLASS::IN.into(), false));
    Some(query)
}

/// Sends the query and returns the response. Each is preceded by its length.
async fn send_query(server: SocketAddr, query: &Packet<'_>) -> io::Result<Vec<u8>> {
    let query = query.build_bytes_vec().map_err(io::Error::other)?;
    let length = u16::try_from(query.len()).map_err(io::Error::other)?;
    let mut connection = TcpStream::connect(server).await?;
    connection.write_all(&[&length.to_be_bytes()[..], &query].concat()).await?;
    let mut response = vec![0; connection.read_u16().await?.into()];
    connection.read_exact(&mut response).await?;
    Ok(response)
}

/// Returns the records of the type in a response, `None` if the name does not exist, or the error that the response has.
fn records(response: &[u8], record_type: TYPE) -> Result<Option<Vec<RData<'static>>>, String> {
    let response = Packet::parse(response).map_err(|error| error.to_string())?;
    let is_final = [PacketFlag::AUTHORITATIVE_ANSWER, PacketFlag::RECURSION_AVAILABLE];
    let is_final = is_final.into_iter().any(|flag| response.has_flags(flag));
    match response.rcode() {
        RCODE::NoError if response.answers.is_empty() && !is_final => {
            Err("it is not authoritative for this name and does not offer recursion".to_owned())
        }
        // Records of other types belong to aliases of the name.
        RCODE::NoError => {
            let answers = response.answers.into_iter();
            let answers = answers.filter(|record| record.class == CLASS::IN && record.match_qtype(record_type.into()));
            Ok(Some(answers.map(|record| record.rdata.into_owned()).collect()))
        }
        RCODE::NameError => Ok(None),
        RCODE::FormatError => Err("FORMERR".to_owned()),
        RCODE::ServerFailure => Err("SERVFAIL".to_owned()),
        RCODE::NotImplemented => Err("NOTIMP".to_owned()),
        RCODE::Refused => Err("REFUSED".to_owned()),
        other => Err(format!("{other:?}")),
    }
}

/// Returns the joined strings of a TXT record.
fn text(record: RData<'_>) -> Option<String> {
    let RData::TXT(txt) = record else { return None };
    Some(String::try_from(txt).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// Whether an MX record names the root, which means that the domain accepts no mail (RFC 7505).
fn is_null_mx(record: &RData<'_>) -> bool {
    matches!(record, RData::MX(mx) if mx.exchange.get_labels().is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use simple_dns::ResourceRecord;
    use simple_dns::rdata::{CNAME, TXT};

    use super::*;

    const NAME: &str = "mail.troupe.example";

    fn servers(file: &str) -> Vec<String> {
        NameServers::from_resolv_conf(file).0.iter().map(ToString::to_string).collect()
    }

    fn txt_query() -> Packet<'static> {
        query(NAME, TYPE::TXT).unwrap()
    }

    /// An empty response to `query`.
    fn reply<'a>(query: &Packet<'a>, flags: PacketFlag, rcode: RCODE) -> Packet<'a> {
        let mut reply = query.clone().into_reply();
        reply.set_flags(flags);
        *reply.rcode_mut() = rcode;
        reply
    }

    /// An alias and the two TXT records of its target.
    fn txt_reply() -> Vec<u8> {
        let strings = TXT::new().with_string("v=spf1 include:troupe.exa").unwrap().with_string("mple -all").unwrap();
        let other = TXT::new().with_string("something else").unwrap();
        let target = || Name::new("alias.troupe.example").unwrap();
        let mut reply = reply(&txt_query(), PacketFlag::RECURSION_AVAILABLE, RCODE::NoError);
        reply.answers = [
            (Name::new(NAME).unwrap(), RData::CNAME(CNAME(target()))),
            (target(), RData::TXT(strings)),
            (target(), RData::TXT(other)),
        ]
        .map(|(name, data)| ResourceRecord::new(name, CLASS::IN, 60, data))
        .to_vec();
        reply.build_bytes_vec_compressed().unwrap()
    }

    fn texts(response: &[u8]) -> Vec<String> {
        records(response, TYPE::TXT).unwrap().unwrap().into_iter().filter_map(text).collect()
    }

    #[test]
    fn the_first_three_servers_of_the_system_are_queried_or_else_this_host() {
        let file = "# nameserver 1.1.1.1\nsearch lan\nnameserver 192.0.2.1\nnameserver\t2001:db8::1 # ours\n\
                    nameserver fe80::1%eth0\nnameserver nonsense\n nameserver 192.0.2.3\nnameserver 192.0.2.4\n";
        assert_eq!(servers(file), ["192.0.2.1:53", "[2001:db8::1]:53", "192.0.2.3:53"]);
        assert_eq!(servers("search lan\n"), ["127.0.0.1:53"]);
    }

    #[test]
    fn a_server_is_given_by_its_address_with_or_without_a_port() {
        for (text, server) in [
            ("192.0.2.1", "192.0.2.1:53"),
            ("192.0.2.1:5353", "192.0.2.1:5353"),
            ("2001:db8::1", "[2001:db8::1]:53"),
            ("[2001:db8::1]:5353", "[2001:db8::1]:5353"),
        ] {
            assert_eq!(NameServers::parse(text).unwrap().0, [server.parse().unwrap()], "{text}");
        }
        for text in ["", "dns.example", "192.0.2.1:", "192.0.2.1:99999", "[2001:db8::1]"] {
            assert_eq!(NameServers::parse(text), Err(InvalidNameServer), "{text}");
        }
    }

    #[test]
    fn the_strings_of_a_text_record_are_joined_and_aliases_are_left_out() {
        let expected = ["v=spf1 include:troupe.example -all", "something else"];
        assert_eq!(texts(&txt_reply()), expected);
    }

    #[test]
    fn response_codes_are_reported() {
        let respond = |flags, rcode| records(&reply(&txt_query(), flags, rcode).build_bytes_vec().unwrap(), TYPE::TXT);
        let recursive = PacketFlag::RECURSION_AVAILABLE;
        for flags in [recursive, PacketFlag::AUTHORITATIVE_ANSWER] {
            assert!(respond(flags, RCODE::NoError).unwrap().unwrap().is_empty());
        }
        assert!(respond(recursive, RCODE::NameError).unwrap().is_none());
        assert_eq!(respond(recursive, RCODE::ServerFailure).unwrap_err(), "SERVFAIL");
        assert!(respond(PacketFlag::empty(), RCODE::NoError).is_err(), "it has no answer");
    }

    #[test]
    fn a_name_that_is_too_long_is_not_queried() {
        let long = vec!["a".repeat(63); 4].join(".");
        for name in [&"a".repeat(64), &long] {
            assert!(query(name, TYPE::TXT).is_none(), "{name}");
        }
        assert!(query(&long[..253], TYPE::TXT).is_some());
    }

    proptest! {
        #[test]
        fn no_bytes_cause_a_panic(mut bytes in prop::collection::vec(any::<u8>(), 4..600), as_response: bool) {
            if as_response {
                bytes[..4].copy_from_slice(&[0, 0, 0x81, 0x80]);
            }
            let _ = records(&bytes, TYPE::TXT);
        }

        #[test]
        fn no_change_to_a_response_causes_a_panic(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)
        ) {
            let mut bytes = txt_reply();
            for (index, byte) in changes {
                let index = index.index(bytes.len());
                bytes[index] = byte;
            }
            let _ = records(&bytes, TYPE::TXT);
        }
    }
}
