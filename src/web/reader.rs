//! Identifies who sent a request, for the counts of readers.

use http::HeaderMap;
use http::header::USER_AGENT;

use crate::domain::reader::Reader;

pub(crate) fn reader_of(headers: &HeaderMap, asks_for_markdown: bool) -> Reader {
    let user_agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
    Reader::of_user_agent(user_agent, asks_for_markdown)
}
