//! Releases as other programs subscribe to them: Sparkle's appcast, and an Atom feed.

use std::fmt::Write;

use super::listing::{anchor, url};
use crate::domain::base_url::BaseUrl;
use crate::domain::release::{Release, Releases, Signature};
use crate::site::{PageName, SiteFacts, markdown_to_html};

pub(crate) const APPCAST: &str = "/appcast.xml";
pub(crate) const ATOM: &str = "/releases.atom";

/// What Sparkle 2 reads to find updates. Early versions are in a channel of their own, which an app
/// has to ask for.
pub(crate) fn appcast(facts: &SiteFacts, releases: &Releases, base_url: &BaseUrl) -> String {
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <rss version=\"2.0\" xmlns:sparkle=\"http://www.andymatuschak.org/xml-namespaces/sparkle\">\n  <channel>\n    \
         <title>{}</title>\n    <link>{}</link>\n    <description>{}</description>\n    <language>en</language>\n",
        escaped(&facts.name),
        base_url.to(PageName::Releases.path()),
        escaped(&facts.tagline),
    );
    for release in releases.offered() {
        let _ = write!(
            xml,
            "    <item>\n      <title>{version}</title>\n      <pubDate>{date}</pubDate>\n      \
             <sparkle:version>{build}</sparkle:version>\n      \
             <sparkle:shortVersionString>{version}</sparkle:shortVersionString>\n",
            version = release.version,
            date = release.published.rfc2822(),
            build =
                release.build.as_ref().map_or_else(|| release.version.to_string(), |build| build.as_str().to_owned()),
        );
        if let Some(system) = &release.minimum_macos {
            let system = system.as_str();
            let _ = writeln!(xml, "      <sparkle:minimumSystemVersion>{system}</sparkle:minimumSystemVersion>");
        }
        if release.prerelease {
            xml.push_str("      <sparkle:channel>beta</sparkle:channel>\n");
        }
        let _ =
            writeln!(xml, "      <description>{}</description>", escaped(&markdown_to_html(release.notes.as_str())));
        let signature = release.signature.as_ref().map(Signature::as_str);
        let signature = signature.map(|text| format!(" sparkle:edSignature=\"{text}\"")).unwrap_or_default();
        let _ = writeln!(
            xml,
            "      <enclosure url=\"{}\" length=\"{}\" type=\"application/octet-stream\"{signature}/>\n    </item>",
            escaped(&url(release, base_url)),
            release.length,
        );
    }
    xml.push_str("  </channel>\n</rss>\n");
    xml
}

/// The releases for feed readers. `made` is the day the site's own words changed: the feed's date
/// while there is no release.
pub(crate) fn atom(facts: &SiteFacts, releases: &Releases, base_url: &BaseUrl, made: &str) -> String {
    let page = base_url.to(PageName::Releases.path());
    let latest = releases.offered().map(|release| release.published.rfc3339()).max();
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\" xml:lang=\"en\">\n  \
         <title>Releases of {}</title>\n  <id>{page}</id>\n  <updated>{}</updated>\n  \
         <link rel=\"self\" type=\"application/atom+xml\" href=\"{}\"/>\n  \
         <link rel=\"alternate\" type=\"text/html\" href=\"{page}\"/>\n  <author><name>{}</name></author>\n",
        escaped(&facts.name),
        latest.unwrap_or_else(|| format!("{made}T00:00:00Z")),
        base_url.to(ATOM),
        escaped(&facts.maker),
    );
    for release in releases.offered() {
        let _ = write!(xml, "{}", entry(facts, release, base_url, &page));
    }
    xml.push_str("</feed>\n");
    xml
}

fn entry(facts: &SiteFacts, release: &Release, base_url: &BaseUrl, page: &str) -> String {
    let published = release.published.rfc3339();
    format!(
        "  <entry>\n    <title>{} {version}</title>\n    <id>{page}#{anchor}</id>\n    \
         <published>{published}</published>\n    <updated>{published}</updated>\n    \
         <link rel=\"alternate\" type=\"text/html\" href=\"{page}#{anchor}\"/>\n    \
         <link rel=\"enclosure\" type=\"application/x-apple-diskimage\" length=\"{}\" href=\"{}\"/>\n    \
         <content type=\"html\">{}</content>\n  </entry>\n",
        escaped(&facts.name),
        release.length,
        escaped(&url(release, base_url)),
        escaped(&markdown_to_html(release.notes.as_str())),
        version = release.version,
        anchor = anchor(release),
    )
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}
