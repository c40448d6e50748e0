//! Lists the objects of a bucket, and reads small ones.

use bytes::Bytes;
use http::Method;
use http_body_util::{BodyExt as _, Limited};
use tokio::time::timeout;

use crate::bucket::{Bucket, BucketFailure, IDLE_TIMEOUT, no_answer};
use crate::http_client::cause;

/// A page of the list has at most a thousand names of at most a kilobyte.
const MAX_PAGE_BYTES: usize = 8 * 1024 * 1024;
/// The bucket may say that there are more pages for ever.
const MAX_PAGES: usize = 1000;

impl Bucket {
    /// Returns the key and the length of every object, in the order of the keys.
    pub async fn list(&self) -> Result<Vec<(String, u64)>, BucketFailure> {
        let (mut objects, mut next) = (Vec::new(), None::<String>);
        for _ in 0..MAX_PAGES {
            let token = next.as_deref().map(|token| ("continuation-token", token));
            let query = [("list-type", "2"), ("prefix", self.0.prefix.as_str())];
            let query: Vec<_> = token.into_iter().chain(query).collect();
            let page = self.fetch(&self.0.url, &query, MAX_PAGE_BYTES).await?;
            let page = String::from_utf8_lossy(&page);
            let object = |entry: &str| {
                let key = element(entry, "Key")?.strip_prefix(&self.0.prefix)?.to_owned();
                Some((key, element(entry, "Size")?.parse().ok()?))
            };
            objects.extend(page.split("<Contents>").skip(1).filter_map(object));
            next = element(&page, "NextContinuationToken").map(|token| token.replace("&amp;", "&"));
            if next.is_none() {
                objects.sort_unstable();
                return Ok(objects);
            }
        }
        Err(BucketFailure::Unavailable("its list of objects does not end".to_owned()))
    }

    /// Reads an object that has at most `max_bytes` bytes.
    pub async fn get(&self, key: &str, max_bytes: usize) -> Result<Bytes, BucketFailure> {
        self.fetch(&self.object_url(key), &[], max_bytes).await
    }

    async fn fetch(&self, url: &url::Url, query: &[(&str, &str)], max_bytes: usize) -> Result<Bytes, BucketFailure> {
        let response = self.send(Method::GET, url, query, &[], IDLE_TIMEOUT).await?;
        let body = timeout(IDLE_TIMEOUT, Limited::new(response.into_body(), max_bytes).collect());
        let body = body.await.map_err(|_| no_answer())?;
        body.map(http_body_util::Collected::to_bytes).map_err(|error| BucketFailure::Unavailable(cause(&*error)))
    }
}

/// The text of the first element of this name. Of the names that are looked for, none has a character that XML escapes.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0)
}
