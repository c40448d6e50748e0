//! Reads the addresses in a header that proxies add: `Forwarded` (RFC 7239), or a list of addresses such as
//! `X-Forwarded-For`. A header with a single address is a list of one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::HeaderMap;

use crate::domain::network::TrustedProxies;

/// Headers in which proxies name the client. Their presence shows that there is a proxy.
pub(crate) const FORWARDING_HEADERS: [&str; 8] = [
    "x-forwarded-for",
    "forwarded",
    "x-real-ip",
    "cf-connecting-ip",
    "true-client-ip",
    "fastly-client-ip",
    "fly-client-ip",
    "x-client-ip",
];

/// Returns the client that the header names, if it names one.
///
/// Each proxy appends the address that connected to it. So the last entry is true, and the one before it is true if the last one is
/// a trusted proxy, and so on. Everything before that may have been made up by the client.
pub(super) fn named_client(proxies: &TrustedProxies, headers: &HeaderMap) -> Option<IpAddr> {
    let mut client = None;
    for entry in addresses(proxies.header(), headers) {
        let Some(address) = entry else { break };
        client = Some(address);
        if !proxies.contains(address) {
            break;
        }
    }
    client
}

/// Returns the entries of all lines of the header, from the last to the first. `None` is an entry that is not an
/// address. `header` is a name in lower case.
///
/// The last entries come from our own proxies, and any client can forge the first ones. So nothing in the first ones, such as a
/// quote that is never closed, may change how the last ones are read.
fn addresses<'a>(header: &str, headers: &'a HeaderMap) -> impl Iterator<Item = Option<IpAddr>> + use<'a> {
    let is_forwarded = header == "forwarded";
    headers.get_all(header).iter().rev().flat_map(move |line| {
        let entries = std::iter::successors(Some((Some(line.as_bytes()), &[][..])), move |(rest, _)| {
            let rest = (*rest)?;
            let comma =
                if is_forwarded { last_unquoted_comma(rest) } else { rest.iter().rposition(|byte| *byte == b',') };
            Some(match comma {
                Some(place) => (Some(&rest[..place]), &rest[place + 1..]),
                None => (None, rest),
            })
        });
        let entries = entries.skip(1).map(|(_, entry)| entry.trim_ascii()).filter(|entry| !entry.is_empty());
        entries.map(move |entry| {
            let entry = str::from_utf8(entry).ok()?;
            if is_forwarded { parse_forwarded_element(entry) } else { parse_node(entry) }
        })
    })
}

/// Returns the place of the last comma that is not in a quoted string.
fn last_unquoted_comma(line: &[u8]) -> Option<usize> {
    let mut in_quotes = false;
    for (place, byte) in line.iter().enumerate().rev() {
        match byte {
            b'"' if in_quotes => {
                let backslashes = line[..place].iter().rev().take_while(|byte| **byte == b'\\').count();
                in_quotes = backslashes % 2 == 1;
            }
            b'"' => in_quotes = true,
            b',' if !in_quotes => return Some(place),
            _ => {}
        }
    }
    None
}

/// Returns the address of the parameter `for` of one element, such as `for=192.0.2.60;proto=http`.
fn parse_forwarded_element(element: &str) -> Option<IpAddr> {
    let mut found = None;
    let mut rest = element;
    loop {
        let (name, value, after) = parse_pair(rest)?;
        if name.eq_ignore_ascii_case("for") {
            if found.is_some() {
                return None;
            }
            found = Some(parse_node(&value)?);
        }
        rest = after.trim_start();
        if rest.is_empty() {
            return found;
        }
        rest = rest.strip_prefix(';')?.trim_start();
    }
}

/// Splits `name=value` off, where the value is a token or a quoted string.
fn parse_pair(text: &str) -> Option<(&str, String, &str)> {
    let (name, text) = text.split_once('=')?;
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([';', ' ', '\t', '"']).unwrap_or(text.len());
        return Some((name.trim(), text[..end].to_owned(), &text[end..]));
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((place, character)) = characters.next() {
        match character {
            '"' => return Some((name.trim(), value, &quoted[place + 1..])),
            '\\' => value.push(characters.next()?.1),
            character => value.push(character),
        }
    }
    None
}

/// Parses an address with or without a port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`,
/// `[2001:db8::1]:80`. Names such as `unknown` and `_hidden` are not addresses.
fn parse_node(text: &str) -> Option<IpAddr> {
    if let Some(bracketed) = text.strip_prefix('[') {
        let (address, port) = bracketed.split_once(']')?;
        let has_valid_end = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
        return has_valid_end.then(|| address.parse::<Ipv6Addr>().ok())?.map(IpAddr::from);
    }
    text.parse().ok().or_else(|| {
        let (address, port) = text.rsplit_once(':')?;
        is_port(port).then(|| address.parse::<Ipv4Addr>().ok())?.map(IpAddr::from)
    })
}

/// A number, or a name that stands for one (RFC 7239, section 6.2).
fn is_port(text: &str) -> bool {
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    match text.strip_prefix('_') {
        Some(name) => !name.is_empty() && name.bytes().all(is_name_byte),
        None => text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};
    use proptest::prelude::*;

    use super::*;
    use crate::domain::network::parse_networks;

    /// The entries from left to right.
    fn read(header: &'static str, lines: &[impl AsRef<[u8]>]) -> Vec<Option<IpAddr>> {
        let name = HeaderName::from_static(header);
        let lines = lines.iter().map(|line| (name.clone(), HeaderValue::from_bytes(line.as_ref()).unwrap()));
        let mut entries: Vec<_> = addresses(header, &lines.collect()).collect();
        entries.reverse();
        entries
    }

    fn ip(text: &str) -> Option<IpAddr> {
        text.parse().ok()
    }

    #[test]
    fn addresses_are_read_with_ports_and_brackets() {
        let line = "203.0.113.7, 203.0.113.8:80,2001:db8::1 , [2001:db8::2], [2001:db8::3]:443, ::ffff:10.0.0.1";
        let expected =
            ["203.0.113.7", "203.0.113.8", "2001:db8::1", "2001:db8::2", "2001:db8::3", "::ffff:10.0.0.1"].map(ip);
        assert_eq!(read("x-forwarded-for", &[line]), expected);
    }

    #[test]
    fn several_lines_are_one_list() {
        assert_eq!(
            read("x-forwarded-for", &["203.0.113.7, 203.0.113.8", "", "203.0.113.9"]),
            ["203.0.113.7", "203.0.113.8", "203.0.113.9"].map(ip)
        );
        assert_eq!(read("forwarded", &["for=203.0.113.7", "for=203.0.113.8"]), ["203.0.113.7", "203.0.113.8"].map(ip));
        assert_eq!(read("cf-connecting-ip", &["203.0.113.7"]), [ip("203.0.113.7")]);
    }

    #[test]
    fn an_entry_that_is_no_address_is_reported_as_such() {
        for entry in [
            "unknown",
            "_hidden",
            "203.0.113",
            "203.0.113.7:",
            "203.0.113.7:x",
            "203.0.113.7:99999",
            "[2001:db8::1",
            "[203.0.113.7]",
            "[2001:db8::1]x",
            "2001:db8::1::",
            "for=203.0.113.7",
            "\"203.0.113.7\"",
            "a b",
            "\u{fc}",
        ] {
            let line = format!("203.0.113.7, {entry}");
            assert_eq!(read("x-forwarded-for", &[line]), [ip("203.0.113.7"), None], "{entry}");
        }
        assert_eq!(read("x-forwarded-for", &[b"203.0.113.7,\xff"]), [ip("203.0.113.7"), None]);
    }

    #[test]
    fn the_standard_header_is_read_as_rfc_7239_writes_it() {
        for (line, expected) in [
            ("for=192.0.2.43", ip("192.0.2.43")),
            ("For=192.0.2.43; Proto=http ;by=203.0.113.43", ip("192.0.2.43")),
            ("proto=http;for=\"192.0.2.43:47011\"", ip("192.0.2.43")),
            ("for=\"[2001:db8:cafe::17]:4711\"", ip("2001:db8:cafe::17")),
            ("for=\"[2001:db8:cafe::17]:_port\"", ip("2001:db8:cafe::17")),
            ("for=\"192.0.2.4\\3\"", ip("192.0.2.43")),
            ("for=192.0.2.43;host=\"a,b;\\\"for=1.1.1.1\"", ip("192.0.2.43")),
            ("for=unknown", None),
            ("for=\"_gazonk\"", None),
            ("for=_SEVKISEK", None),
            ("proto=http", None),
            ("for=192.0.2.43;for=192.0.2.44", None),
            ("for=\"192.0.2.43", None),
            ("for=\"192.0.2.43\"x", None),
            ("192.0.2.43", None),
        ] {
            assert_eq!(read("forwarded", &[line]), [expected], "{line}");
        }
    }

    #[test]
    fn what_a_client_sent_does_not_change_how_the_entry_of_the_proxy_is_read() {
        for sent in ["for=\"1.1.1.1", "for=\"1.1.1.1\\", "\"", "\\\"", "for=1.1.1.1;host=\"x", ",,,", "for=\"a\\\""] {
            for appended in ["for=203.0.113.7", "for=\"203.0.113.7:80\";host=\"a,\\\"b\""] {
                let entries = read("forwarded", &[format!("{sent}, {appended}")]);
                assert_eq!(entries.last(), Some(&ip("203.0.113.7")), "{sent} {appended}");
            }
        }
    }

    /// How a proxy may write an address, in both kinds of headers.
    fn written(address: IpAddr, with_port: bool) -> [String; 2] {
        let node = match (address, with_port) {
            (address, false) if address.is_ipv4() => address.to_string(),
            (IpAddr::V4(address), _) => format!("{address}:4711"),
            (address, false) => format!("[{address}]"),
            (address, true) => format!("[{address}]:4711"),
        };
        [node.clone(), format!("for=\"{node}\";proto=https")]
    }

    proptest! {
        #[test]
        fn every_address_that_proxies_write_is_read(addresses: Vec<(IpAddr, bool)>) {
            let expected: Vec<_> = addresses.iter().map(|(address, _)| Some(*address)).collect();
            for (index, header) in ["x-forwarded-for", "forwarded"].into_iter().enumerate() {
                let lines = addresses.iter().map(|(address, with_port)| written(*address, *with_port)[index].clone());
                let lines: Vec<_> = lines.collect();
                prop_assert_eq!(&read(header, &[lines.join(", ")]), &expected);
                prop_assert_eq!(&read(header, &lines), &expected);
            }
        }

        #[test]
        fn the_entry_of_the_proxy_is_read_whatever_a_client_sent(sent in "[ -~]{0,60}", address: IpAddr, port: bool) {
            for (index, header) in ["x-forwarded-for", "forwarded"].into_iter().enumerate() {
                let entries = read(header, &[format!("{sent}, {}", written(address, port)[index])]);
                prop_assert_eq!(entries.last(), Some(&Some(address)));
            }
        }
    }

    /// `None` is an entry that is not an address.
    fn client_named_by(entries: &[Option<&str>]) -> Option<String> {
        let networks = parse_networks("10.0.0.0/8, 2001:db8:aaaa::/48").unwrap();
        let proxies = TrustedProxies::new("x-forwarded-for".to_owned(), networks);
        let list = entries.iter().map(|entry| entry.unwrap_or("unknown")).collect::<Vec<_>>().join(", ");
        let headers = HeaderMap::from_iter([(HeaderName::from_static("x-forwarded-for"), list.parse().unwrap())]);
        named_client(&proxies, &headers).map(|address| address.to_string())
    }

    #[test]
    fn the_client_is_the_rightmost_address_that_is_not_a_trusted_proxy() {
        let proxy = Some("10.0.0.2");
        for (entries, expected) in [
            (&[][..], None),
            (&[Some("203.0.113.7")], Some("203.0.113.7")),
            (&[Some("198.51.100.1"), Some("203.0.113.7")], Some("203.0.113.7")),
            (&[Some("198.51.100.1"), Some("203.0.113.7"), proxy], Some("203.0.113.7")),
            (&[Some("203.0.113.7"), Some("2001:db8:aaaa::1"), proxy], Some("203.0.113.7")),
            (&[Some("203.0.113.7"), Some("::ffff:10.1.1.1")], Some("203.0.113.7")),
            // All are trusted: the leftmost.
            (&[Some("10.0.0.1"), proxy], Some("10.0.0.1")),
            // An entry that is no address ends the walk, and the one to its right counts.
            (&[Some("203.0.113.7"), None, proxy], proxy),
            (&[Some("203.0.113.7"), None], None),
        ] {
            assert_eq!(client_named_by(entries).as_deref(), expected, "{entries:?}");
        }
    }
}
