//! Signatures of requests to an S3-compatible service: AWS Signature Version 4, in the URL.

use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderName, Method};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::{Position, Url};

use crate::config::{AccessKey, Secret};
use crate::domain::sha256::{Sha256, hex};
use crate::domain::time::Timestamp;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// What is encoded in the names and values of a query: everything but the unreserved characters.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Signs requests with one key for one region.
#[derive(Clone, Debug)]
pub(super) struct Signer {
    pub key: AccessKey,
    pub region: String,
}

impl Signer {
    /// Returns the URL with a query and a signature of a request with these headers, of which those of S3 itself have to be signed.
    /// The names of the query are lower-case and sorted. Everybody can use the URL for so long.
    pub(super) fn signed_url(
        &self,
        method: &Method,
        url: &Url,
        query: &[(&str, &str)],
        headers: &[(HeaderName, &str)],
        life: Duration,
        now: Timestamp,
    ) -> String {
        let own = headers.iter().map(|(name, value)| (name.as_str(), *value));
        let own = own.filter(|(name, _)| name.starts_with("x-amz-"));
        let mut signed: Vec<_> = own.chain([("host", host_of(url))]).collect();
        signed.sort_unstable();
        let names = signed.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        // Such as `20261115T120000Z`.
        let time: String = now.rfc3339().chars().filter(|c| !matches!(c, '-' | ':')).collect();
        let scope = [&time[..8], &self.region, "s3", "aws4_request"];
        let credential = format!("{}/{}", self.key.id, scope.join("/"));
        let life = life.as_secs().to_string();
        let token = self.key.session_token.as_ref().map(Secret::expose);
        // In the order of the names, as the signature has them: capital letters first.
        let parameters = [
            Some(("X-Amz-Algorithm", ALGORITHM)),
            Some(("X-Amz-Credential", credential.as_str())),
            Some(("X-Amz-Date", time.as_str())),
            Some(("X-Amz-Expires", life.as_str())),
            token.map(|token| ("X-Amz-Security-Token", token)),
            Some(("X-Amz-SignedHeaders", names.as_str())),
        ];
        let query = parameters
            .into_iter()
            .flatten()
            .chain(query.iter().copied())
            .map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, ENCODED)))
            .collect::<Vec<_>>()
            .join("&");
        let headers = signed.iter().map(|(name, value)| format!("{name}:{value}")).collect::<Vec<_>>().join("\n");
        let request = format!("{method}\n{}\n{query}\n{headers}\n\n{names}\nUNSIGNED-PAYLOAD", url.path());
        let digest = Sha256::of(request.as_bytes()).hex();
        let text = format!("{ALGORITHM}\n{time}\n{}\n{digest}", scope.join("/"));
        let secret = format!("AWS4{}", self.key.secret.expose()).into_bytes();
        let signature = scope.into_iter().chain([text.as_str()]).fold(secret, |key, part| hmac(&key, part));
        format!("{url}?{query}&X-Amz-Signature={}", hex(&signature))
    }
}

/// The host and port as a client sends them: without the default port.
fn host_of(url: &Url) -> &str {
    &url[Position::BeforeHost..Position::AfterPort]
}

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    // A key of any length is accepted.
    let Ok(mut mac) = Hmac::<sha2::Sha256>::new_from_slice(key) else { return Vec::new() };
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key, the bucket and the time of the examples in Amazon's documentation of Signature Version 4.
    fn signer() -> Signer {
        let secret = Secret::new("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned());
        let key = AccessKey { id: "AKIAIOSFODNN7EXAMPLE".to_owned(), secret, session_token: None };
        Signer { key, region: "us-east-1".to_owned() }
    }

    fn url(path: &str) -> Url {
        Url::parse(&format!("https://examplebucket.s3.amazonaws.com{path}")).unwrap()
    }

    fn now() -> Timestamp {
        Timestamp::parse("2013-05-24T00:00:00Z").unwrap()
    }

    #[test]
    fn a_url_is_signed_as_in_the_example_of_amazon() {
        assert_eq!(
            signer().signed_url(&Method::GET, &url("/test.txt"), &[], &[], Duration::from_hours(24), now()),
            "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256\
             &X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request\
             &X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
             &X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
        );
    }
}
