//! Asks name servers what DNS holds under a name.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use super::message::{Answer, Kind, Question, takes_no_mail, text};

const PORT: u16 = 53;
/// As many as the system's own resolver asks.
const MOST: usize = 3;
/// Datagrams get lost, so every server is asked again.
const ROUNDS: usize = 2;
/// For one server, one time.
const ANSWER_WITHIN: Duration = Duration::from_millis(1500);

/// Whom to ask, one after the other until one answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameServers(Vec<SocketAddr>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not an address such as 9.9.9.9, 127.0.0.1:5353 or [2620:fe::fe]:53")]
pub struct InvalidNameServer;

/// Why nobody answered: what the last server that was asked did.
#[derive(Debug, thiserror::Error)]
pub enum DnsFailure {
    #[error("{0} does not answer")]
    Silent(SocketAddr),
    #[error("{0} cannot be reached: {1}")]
    Unreachable(SocketAddr, io::Error),
    #[error("{0} does not tell: {1}")]
    Declined(SocketAddr, String),
    #[error("the system gives no chance: {0}")]
    Random(#[from] getrandom::Error),
}

/// Where mail to a domain goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailRoute {
    /// To a mail server, or to the host of that name.
    Open,
    /// Nowhere, says the domain itself.
    Closed,
    Missing,
    NoSuchDomain,
}

impl NameServers {
    /// Those that the system asks, as far as it says so.
    #[must_use]
    pub fn of_this_machine() -> Self {
        Self::listed(&std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default())
    }

    fn listed(file: &str) -> Self {
        let named = file.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let address = words.next().filter(|word| *word == "nameserver").and(words.next())?;
            Some(SocketAddr::new(address.parse().ok()?, PORT))
        });
        let servers: Vec<_> = named.take(MOST).collect();
        if servers.is_empty() {
            return Self(vec![SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT)]);
        }
        Self(servers)
    }

    /// One server, by address or by address and port.
    ///
    /// # Errors
    /// Says that `text` is neither.
    pub fn parse(text: &str) -> Result<Self, InvalidNameServer> {
        let server = text.parse().or_else(|_| text.parse().map(|address| SocketAddr::new(address, PORT)));
        server.map(|server| Self(vec![server])).map_err(|_| InvalidNameServer)
    }

    /// The texts of a name; none if there is no such name.
    ///
    /// # Errors
    /// If no server answers.
    pub async fn texts(&self, name: &str) -> Result<Vec<String>, DnsFailure> {
        let records = self.ask(name, Kind::Text).await?.unwrap_or_default();
        Ok(records.iter().filter_map(|record| text(record)).collect())
    }

    /// Where mail to a domain goes.
    ///
    /// # Errors
    /// If no server answers.
    pub async fn way_for_mail(&self, domain: &str) -> Result<MailRoute, DnsFailure> {
        let Some(servers) = self.ask(domain, Kind::MailServer).await? else { return Ok(MailRoute::NoSuchDomain) };
        if !servers.is_empty() {
            let closed = servers.iter().all(|record| takes_no_mail(record));
            return Ok(if closed { MailRoute::Closed } else { MailRoute::Open });
        }
        let hosts = tokio::try_join!(self.ask(domain, Kind::Ipv4), self.ask(domain, Kind::Ipv6))?;
        let there = [hosts.0, hosts.1].into_iter().flatten().any(|addresses| !addresses.is_empty());
        Ok(if there { MailRoute::Open } else { MailRoute::Missing })
    }

    /// The records of a name; `None` if there is no such name.
    async fn ask(&self, name: &str, kind: Kind) -> Result<Option<Vec<Vec<u8>>>, DnsFailure> {
        let mut nobody = None;
        for server in self.0.iter().cycle().take(self.0.len() * ROUNDS) {
            let mut id = [0; 2];
            getrandom::fill(&mut id)?;
            let Some(question) = Question::new(u16::from_be_bytes(id), name, kind) else { return Ok(None) };
            nobody = Some(match timeout(ANSWER_WITHIN, ask_one(*server, &question)).await {
                Ok(Ok(Answer::Records(records))) => return Ok(Some(records)),
                Ok(Ok(Answer::NoSuchName)) => return Ok(None),
                Ok(Ok(Answer::Declined(why))) => DnsFailure::Declined(*server, why),
                Ok(Err(why)) => DnsFailure::Unreachable(*server, why),
                Ok(Ok(Answer::Truncated)) | Err(_) => DnsFailure::Silent(*server),
            });
        }
        nobody.map_or(Ok(None), Err)
    }
}

async fn ask_one(server: SocketAddr, question: &Question) -> io::Result<Answer> {
    match over_udp(server, question).await? {
        Answer::Truncated => over_tcp(server, question).await,
        answer => Ok(answer),
    }
}

/// Waits for the answer to this question; a connected socket takes nothing from anybody else, and
/// what else comes is not listened to.
async fn over_udp(server: SocketAddr, question: &Question) -> io::Result<Answer> {
    let here: IpAddr = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((here, 0)).await?;
    socket.connect(server).await?;
    socket.send(&question.bytes()).await?;
    let mut datagram = vec![0; u16::MAX.into()];
    loop {
        let length = socket.recv(&mut datagram).await?;
        if let Some(answer) = datagram.get(..length).and_then(|bytes| question.answer(bytes)) {
            return Ok(answer);
        }
    }
}

/// Over TCP a message follows its length.
async fn over_tcp(server: SocketAddr, question: &Question) -> io::Result<Answer> {
    let mut connection = TcpStream::connect(server).await?;
    let bytes = question.bytes();
    let length = u16::try_from(bytes.len()).map_err(io::Error::other)?;
    connection.write_all(&[&length.to_be_bytes()[..], &bytes].concat()).await?;
    let mut answer = vec![0; connection.read_u16().await?.into()];
    connection.read_exact(&mut answer).await?;
    question.answer(&answer).ok_or_else(|| io::Error::other("what it says is no answer"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(file: &str) -> Vec<String> {
        NameServers::listed(file).0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_first_servers_of_the_system_are_asked_and_this_machine_without_any() {
        let file = "# nameserver 1.1.1.1\nsearch lan\nnameserver 192.0.2.1\nnameserver\t2001:db8::1 # ours\n\
                    nameserver fe80::1%eth0\nnameserver nonsense\n nameserver 192.0.2.3\nnameserver 192.0.2.4\n";
        assert_eq!(listed(file), ["192.0.2.1:53", "[2001:db8::1]:53", "192.0.2.3:53"]);
        assert_eq!(listed("search lan\n"), ["127.0.0.1:53"]);
    }

    #[test]
    fn a_server_is_named_by_address_with_or_without_a_port() {
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
}
