//! Access control of the ops listener.

use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, CONNECTION, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};

use crate::domain::sha256::Sha256;
use crate::domain::time::Timestamp;
use crate::web::headers::local_host;
use crate::web::wrong_tokens::{Delay, WrongTokens};

/// With a token, every request must carry it. Without one, the host of every request must be an IP address
/// or `localhost`, which protects against DNS rebinding.
///
/// A wrong token ends the connection, and is answered late if there were many (`WrongTokens`).
#[derive(Clone, Debug)]
pub struct OpsAuth {
    token: Option<Sha256>,
    wrong_tokens: WrongTokens,
}

impl OpsAuth {
    pub fn new(token: Option<&str>) -> Self {
        Self { token: token.map(|token| Sha256::of(token.as_bytes())), wrong_tokens: WrongTokens::new() }
    }

    /// Returns why the request is not allowed, if it is not.
    pub(super) fn rejection(&self, headers: &HeaderMap, now: Timestamp) -> Option<Rejection> {
        let at_once = |response| Some(Rejection { response, delay: Delay::NONE });
        match &self.token {
            Some(token) => match credential(headers) {
                Some(sent) if is_equal(&Sha256::of(&sent), token) => None,
                Some(_) => {
                    let response = ([(CONNECTION, "close")], unauthorized()).into_response();
                    Some(Rejection { response, delay: self.wrong_tokens.count(now) })
                }
                None => at_once(unauthorized()),
            },
            None if local_host(headers).is_some() => None,
            None => {
                let text = "Use an IP address such as 127.0.0.1, or localhost, as the host.\n";
                at_once((StatusCode::MISDIRECTED_REQUEST, text).into_response())
            }
        }
    }
}

/// A request that is not allowed.
#[derive(Debug)]
pub(super) struct Rejection {
    response: Response,
    delay: Delay,
}

impl Rejection {
    /// Returns the response when it is time to send it.
    pub(super) async fn respond(self) -> Response {
        self.delay.wait().await;
        self.response
    }
}

/// Compares in constant time, so that the duration does not reveal where the hashes differ.
fn is_equal(a: &Sha256, b: &Sha256) -> bool {
    a.bytes().iter().zip(b.bytes()).fold(0, |differences, (a, b)| differences | (a ^ b)) == 0
}

/// Returns the token of `Bearer`, or the password of `Basic`, which browsers prompt for.
fn credential(headers: &HeaderMap) -> Option<Vec<u8>> {
    let (scheme, value) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(value.trim().as_bytes().to_vec());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = STANDARD.decode(value.trim()).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    Some(decoded[colon + 1..].to_vec())
}

fn unauthorized() -> Response {
    let challenge = [(WWW_AUTHENTICATE, "Basic realm=\"porchlight\", charset=\"UTF-8\"")];
    let text = "Send `ops_token` as a bearer token, or as the password of basic authentication.\n";
    (StatusCode::UNAUTHORIZED, challenge, text).into_response()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::HOST;

    use super::*;
    use crate::domain::limits::{MAX_LATE_OPS_ANSWERS, MAX_OPS_CONNECTIONS, WRONG_OPS_TOKENS};

    const NOW: Timestamp = Timestamp::from_unix_millis(1_794_744_000_000);

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn without_a_token_only_an_ip_address_or_localhost_is_allowed_as_host() {
        let open = OpsAuth::new(None);
        for host in ["127.0.0.1:8081", "[::1]:8081", "localhost:8081", "localhost", "LocalHost", "localhost.:8081"] {
            assert!(open.rejection(&headers(&[("host", host)]), NOW).is_none(), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:8081", "127.0.0.1.evil.example", "user@host:x"] {
            assert!(open.rejection(&headers(&[("host", host)]), NOW).is_some(), "{host}");
        }
        assert!(open.rejection(&HeaderMap::new(), NOW).is_some());
        let mut twice = headers(&[("host", "localhost")]);
        twice.append(HOST, HeaderValue::from_static("evil.example"));
        assert!(open.rejection(&twice, NOW).is_some());
    }

    #[test]
    fn with_a_token_only_requests_that_carry_it_are_allowed() {
        let guarded = OpsAuth::new(Some("a token that is long"));
        let good = ["Bearer a token that is long", "Basic bWU6YSB0b2tlbiB0aGF0IGlzIGxvbmc="];
        for value in good {
            assert!(guarded.rejection(&headers(&[("authorization", value)]), NOW).is_none(), "{value}");
        }
        for value in ["Bearer a token that is lon", "Basic bWU6", "Basic ?", "Bearer", "a token that is long"] {
            assert!(
                guarded.rejection(&headers(&[("authorization", value), ("host", "localhost")]), NOW).is_some(),
                "{value}"
            );
        }
        assert!(guarded.rejection(&HeaderMap::new(), NOW).is_some());
    }

    #[test]
    fn wrong_tokens_are_answered_late_and_the_right_one_never_is() {
        let guarded = OpsAuth::new(Some("a token that is long"));
        let wrong = |now| guarded.rejection(&headers(&[("authorization", "Bearer a wrong token")]), now).unwrap();
        for is_late in [vec![false; WRONG_OPS_TOKENS.burst as usize], vec![true]].concat() {
            let Rejection { response, delay } = wrong(NOW);
            assert_eq!((response.status().as_u16(), delay.is_late()), (401, is_late));
            assert_eq!(response.headers()[CONNECTION], "close");
        }
        assert!(guarded.rejection(&headers(&[("authorization", "Bearer a token that is long")]), NOW).is_none());
        let asks_for_it = guarded.rejection(&HeaderMap::new(), NOW).unwrap();
        assert_eq!((asks_for_it.response.status().as_u16(), asks_for_it.delay.is_late()), (401, false));
        assert!(!asks_for_it.response.headers().contains_key(CONNECTION), "a browser asks its user");
        assert!(!wrong(NOW.after(WRONG_OPS_TOKENS.interval())).delay.is_late());
    }

    #[test]
    fn late_answers_leave_connections_for_the_makers() {
        let guarded = OpsAuth::new(Some("a token that is long"));
        let wrong = || guarded.rejection(&headers(&[("authorization", "Bearer a wrong token")]), NOW).unwrap();
        let rejections: Vec<_> = (0..10 * MAX_OPS_CONNECTIONS).map(|_| wrong()).collect();
        assert_eq!(rejections.iter().filter(|rejection| rejection.delay.is_late()).count(), MAX_LATE_OPS_ANSWERS);
        drop(rejections);
        assert!(wrong().delay.is_late());
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_answer_takes_a_second() {
        let guarded = OpsAuth::new(Some("a token that is long"));
        let wrong = || guarded.rejection(&headers(&[("authorization", "Bearer a wrong token")]), NOW).unwrap();
        for seconds in [vec![0; WRONG_OPS_TOKENS.burst as usize], vec![1]].concat() {
            let started = tokio::time::Instant::now();
            assert_eq!(wrong().respond().await.status().as_u16(), 401);
            assert_eq!(started.elapsed().as_secs(), seconds);
        }
    }
}
