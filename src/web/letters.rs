//! What is built once about the letters in the archive besides their pages: the feed, and the images.

use serde_json::{Value, json};

use super::headers::SHOWN_BY_OTHER_SITES;
use super::representation::UnencodedResponse;
use crate::domain::letters::{LETTERS_PATH, LetterImage};
use crate::domain::network::BaseUrl;
use crate::site::{LetterPage, Site, SiteFailure};

const ATOM: &str = "/letters.atom";
/// Feed readers keep what they have read.
const MAX_FEED_ENTRIES: usize = 20;
/// An image never changes, but its letter may be taken out of the archive.
const CACHE_CONTROL: &str = "public, max-age=86400";

/// The files, with their paths. None without an archive.
pub(crate) fn letter_files(site: &Site, base_url: &BaseUrl) -> Result<Vec<(String, UnencodedResponse)>, SiteFailure> {
    let Some(list) = site.find(LETTERS_PATH) else { return Ok(Vec::new()) };
    let entry = |letter: &LetterPage| {
        json!({
            "title": letter.listed.page.title,
            "url": base_url.to(&letter.listed.address.path),
            "sent": letter.sent.rfc3339(),
            "html": letter.feed_html,
        })
    };
    let newest = site.letters.first().map(|letter| letter.sent.rfc3339());
    let feed = json!({
        "site_language": site.facts.language.as_str(),
        "title": site.feed_title("letters_feed"),
        "maker": site.facts.maker,
        "page_url": base_url.to(LETTERS_PATH),
        "atom_url": base_url.to(ATOM),
        "updated": newest.unwrap_or_else(|| format!("{}T00:00:00Z", list.last_updated)),
        "letters": site.letters.iter().take(MAX_FEED_ENTRIES).map(entry).collect::<Value>(),
    });
    let feed = site.render_str("letters.atom", include_str!("letters.atom"), &feed)?;
    let images = site.letters.iter().flat_map(|letter| &letter.images).map(|(path, image)| (path.clone(), file(image)));
    let feed = (ATOM.to_owned(), UnencodedResponse::file("application/atom+xml", feed));
    Ok(images.chain([feed]).collect())
}

fn file(image: &LetterImage) -> UnencodedResponse {
    let (name, value) = SHOWN_BY_OTHER_SITES;
    let file = UnencodedResponse::file(image.format.as_str(), image.bytes.clone()).with_header(name, value);
    UnencodedResponse { cache_control: CACHE_CONTROL, ..file }
}
