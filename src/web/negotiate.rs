//! Content negotiation: HTML or Markdown by `Accept`, compression by `Accept-Encoding`.
//!
//! An invalid item of a header is ignored; the other items still count.

use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_ENCODING, HeaderName};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageFormat {
    Html,
    Markdown,
    /// The client accepts neither.
    Neither,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Identity,
    Brotli,
    Zstd,
    Gzip,
}

impl Encoding {
    /// In the order in which the server prefers them, usually the smallest first.
    pub(crate) const COMPRESSED: [Self; 3] = [Self::Brotli, Self::Zstd, Self::Gzip];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }
}

/// Markdown if the client names it and weighs it at least as high as HTML. Otherwise HTML, unless the
/// client refuses that.
pub(crate) fn page_format(headers: &HeaderMap) -> PageFormat {
    let [markdown, html, text, any] = weights(headers, &ACCEPT, ["text/markdown", "text/html", "text/*", "*/*"]);
    let (named, range) = (markdown, text.or(any));
    let [markdown, html] = [markdown, html].map(|weight| weight.or(range));
    let refused = |weight: Option<u16>| weight == Some(0);
    if named.is_some_and(|named| named > 0 && named >= html.unwrap_or(0)) {
        PageFormat::Markdown
    } else if !refused(html) {
        PageFormat::Html
    } else if !refused(markdown) {
        PageFormat::Markdown
    } else {
        PageFormat::Neither
    }
}

/// The encoding with the highest weight. A client that refuses all of them gets `identity`.
pub(crate) fn encoding(headers: &HeaderMap) -> Encoding {
    let [first, second, third] = Encoding::COMPRESSED.map(Encoding::as_str);
    let names = [Encoding::Identity.as_str(), first, second, third, "*"];
    let [identity, compressed @ .., any] = weights(headers, &ACCEPT_ENCODING, names);
    let mut best = (Encoding::Identity, identity.unwrap_or(0));
    for (encoding, weight) in Encoding::COMPRESSED.into_iter().zip(compressed) {
        let weight = weight.or(any).unwrap_or(0);
        if weight > 0 && (weight > best.1 || (best.0 == Encoding::Identity && weight >= best.1)) {
            best = (encoding, weight);
        }
    }
    best.0
}

/// The highest weight of each of `names` in a header, in thousandths. `None` for a name that the header does not contain.
/// Parameters other than the weight are ignored.
fn weights<const N: usize>(headers: &HeaderMap, header: &HeaderName, names: [&str; N]) -> [Option<u16>; N] {
    let mut weights = [None; N];
    let values = headers.get_all(header).into_iter().filter_map(|value| value.to_str().ok());
    for item in values.flat_map(|value| value.split(',')) {
        let mut parts = item.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        if let Some(place) = names.iter().position(|known| known.eq_ignore_ascii_case(name))
            && let Some(weight) = weight(parts)
        {
            weights[place] = weights[place].max(Some(weight));
        }
    }
    weights
}

/// The weight among the parameters of an item, 1 if there is none. `None` if it is invalid.
fn weight<'a>(parameters: impl Iterator<Item = &'a str>) -> Option<u16> {
    let mut weight = 1000;
    for parameter in parameters {
        if let Some((key, value)) = parameter.split_once('=')
            && key.trim().eq_ignore_ascii_case("q")
        {
            weight = parse_qvalue(value.trim())?;
        }
    }
    Some(weight)
}

/// Parses a `qvalue` (RFC 9110, section 12.4.2) as thousandths: `0.75` is 750.
fn parse_qvalue(text: &str) -> Option<u16> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole: u16 = matches!(whole, "0" | "1").then(|| whole.parse().ok())??;
    if fraction.len() > 3 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let digits = fraction.bytes().chain(std::iter::repeat(b'0')).take(3);
    let weight = digits.fold(whole, |weight, digit| weight * 10 + u16::from(digit - b'0'));
    (weight <= 1000).then_some(weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format_of(accept: &str) -> PageFormat {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        page_format(&headers)
    }

    fn encoding_of(accept: &str) -> Encoding {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, accept.parse().unwrap());
        encoding(&headers)
    }

    #[test]
    fn agents_that_ask_for_markdown_get_it() {
        for accept in [
            "text/markdown",
            "text/markdown, text/html, */*",
            "text/markdown, text/plain;q=0.9, */*;q=0.8",
            "text/markdown;q=1.0, text/x-markdown;q=0.9, text/plain;q=0.8, text/html;q=0.7, */*;q=0.1",
            "TEXT/Markdown; charset=utf-8",
            "text/html;q=0.5, text/markdown;q=0.5",
            "text/markdown;q=0.001",
            "text/html;q=0",
            "text/html;q=0, text/*;q=0.5",
            "nonsense, ;q=1, text/markdown",
        ] {
            assert_eq!(format_of(accept), PageFormat::Markdown, "{accept}");
        }
    }

    #[test]
    fn other_clients_get_html() {
        assert_eq!(page_format(&HeaderMap::new()), PageFormat::Html);
        for accept in [
            "*/*",
            "text/*",
            "text/html",
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
            "text/html;q=1.0, text/plain;q=0.8, text/markdown;q=0.7",
            "text/markdown;q=0.5, */*;q=0.8",
            "text/markdown;q=0",
            "text/markdown;q=0, */*",
            "application/json",
            "application/json;q=0",
            "",
            "text/markdown;q=high",
            "text/markdown;q=0.1234",
        ] {
            assert_eq!(format_of(accept), PageFormat::Html, "{accept}");
        }
    }

    #[test]
    fn a_client_that_refuses_both_gets_neither() {
        for accept in ["*/*;q=0", "text/*;q=0", "text/html;q=0, text/markdown;q=0", "text/html;q=0, */*;q=0.0"] {
            assert_eq!(format_of(accept), PageFormat::Neither, "{accept}");
        }
        assert_eq!(format_of("*/*;q=0, text/html"), PageFormat::Html);
    }

    #[test]
    fn the_best_accepted_compression_is_chosen() {
        assert_eq!(encoding(&HeaderMap::new()), Encoding::Identity);
        assert_eq!(encoding_of("gzip, deflate, br, zstd"), Encoding::Brotli);
        assert_eq!(encoding_of("gzip, zstd"), Encoding::Zstd);
        assert_eq!(encoding_of("gzip;q=1, br;q=0.5"), Encoding::Gzip);
        assert_eq!(encoding_of("br;q=0, gzip"), Encoding::Gzip);
        assert_eq!(encoding_of("*"), Encoding::Brotli);
        assert_eq!(encoding_of("*;q=0"), Encoding::Identity);
        assert_eq!(encoding_of("identity, gzip;q=0.5"), Encoding::Identity);
        assert_eq!(encoding_of("deflate"), Encoding::Identity);
    }
}
