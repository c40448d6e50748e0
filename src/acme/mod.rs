//! The only module that speaks ACME (RFC 8555): orders a certificate from an authority. Layer 1.
//!
//! Knows no database: where accounts and answers to challenges are kept is up to the caller.

use std::fmt;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{DATE, RETRY_AFTER};
use http::uri::Scheme;
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, BodyWrapper, BytesResponse, ChallengeType, Error, Identifier,
    NewAccount, NewOrder, OrderStatus, RetryPolicy,
};
use tokio::time::timeout;

use crate::config::Secret;
use crate::http_client::{HttpClient, roots_in, system_roots};

/// How long one request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Responses of an authority are small.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;

/// How long to wait for the validation, and for the certificate.
const POLL_TIMEOUT: Duration = Duration::from_mins(1);

/// An account at an authority.
pub struct AcmeAccount {
    account: Account,
    client: AuthorityClient,
}

/// Leaves out the key.
impl fmt::Debug for AcmeAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AcmeAccount").field(&self.account.id()).finish()
    }
}

/// A certificate with its private key, both in PEM format.
#[derive(Clone, Debug)]
pub struct IssuedCertificate {
    pub chain: String,
    pub private_key: Secret,
}

/// Makes the answers to challenges available over HTTP.
pub trait PublishChallenge: Sync {
    /// Returns when the authority can read the answer.
    fn publish(&self, token: &str, answer: &str) -> impl Future<Output = Result<(), String>> + Send;
}

/// Why an authority issued no certificate. A clause that completes a sentence.
#[derive(Debug, thiserror::Error)]
pub enum AcmeFailure {
    #[error("the roots of the authority cannot be read: {0}")]
    Roots(String),
    #[error("the authority no longer knows the account")]
    UnknownAccount,
    #[error("the stored account cannot be read: {0}")]
    Credentials(String),
    #[error("the authority offers no validation over HTTP for {0}")]
    NoHttpChallenge(String),
    #[error("the authority could not validate {host}: {reason}")]
    Refused { host: String, reason: String },
    #[error("the order ended as {0:?}")]
    Order(OrderStatus),
    #[error("the database failed: {0}")]
    Storage(String),
    #[error("the authority asks to wait: {1}")]
    Wait(Duration, String),
    #[error("{0}")]
    Authority(String),
}

impl AcmeFailure {
    /// Adds how long the authority asked to wait.
    fn with_wait(self, client: &AuthorityClient) -> Self {
        match self {
            Self::Authority(why) if !client.retry_after().is_zero() => Self::Wait(client.retry_after(), why),
            failure => failure,
        }
    }

    /// How long the authority asked to wait; zero if it did not.
    pub const fn wait(&self) -> Duration {
        match self {
            Self::Wait(wait, _) => *wait,
            _ => Duration::ZERO,
        }
    }
}

impl From<Error> for AcmeFailure {
    fn from(error: Error) -> Self {
        match &error {
            Error::Api(problem) if problem.r#type.as_deref() == Some(UNKNOWN_ACCOUNT) => Self::UnknownAccount,
            _ => Self::Authority(error.to_string()),
        }
    }
}

/// Checks that there is a root by which the authority's https can be trusted.
pub fn check_ca_file(ca_file: &Path) -> Result<(), AcmeFailure> {
    AuthorityClient::new(Some(ca_file)).map(drop)
}

const UNKNOWN_ACCOUNT: &str = "urn:ietf:params:acme:error:accountDoesNotExist";

impl AcmeAccount {
    /// Opens an account. Returns it with the credentials to keep.
    pub async fn create(directory: &str, ca_file: Option<&Path>, email: &str) -> Result<(Self, String), AcmeFailure> {
        let contact = format!("mailto:{email}");
        let account = NewAccount { contact: &[&contact], terms_of_service_agreed: true, only_return_existing: false };
        let client = AuthorityClient::new(ca_file)?;
        let builder = Account::builder_with_http(Box::new(client.clone()));
        let created = builder.create(&account, directory.to_owned(), None).await;
        let (account, credentials) = created.map_err(|error| AcmeFailure::from(error).with_wait(&client))?;
        let credentials =
            serde_json::to_string(&credentials).map_err(|error| AcmeFailure::Credentials(error.to_string()))?;
        Ok((Self { account, client }, credentials))
    }

    pub async fn restore(credentials: &str, ca_file: Option<&Path>) -> Result<Self, AcmeFailure> {
        let credentials: AccountCredentials =
            serde_json::from_str(credentials).map_err(|error| AcmeFailure::Credentials(error.to_string()))?;
        let client = AuthorityClient::new(ca_file)?;
        let builder = Account::builder_with_http(Box::new(client.clone()));
        match builder.from_credentials(credentials).await {
            Ok(account) => Ok(Self { account, client }),
            Err(Error::KeyRejected) => Err(AcmeFailure::Credentials("its key is damaged".to_owned())),
            Err(error) => Err(AcmeFailure::from(error).with_wait(&client)),
        }
    }

    /// Orders a certificate for the hosts.
    pub async fn order(
        &self,
        hosts: &[String],
        challenges: &impl PublishChallenge,
    ) -> Result<IssuedCertificate, AcmeFailure> {
        self.try_order(hosts, challenges).await.map_err(|failure| failure.with_wait(&self.client))
    }

    async fn try_order(
        &self,
        hosts: &[String],
        challenges: &impl PublishChallenge,
    ) -> Result<IssuedCertificate, AcmeFailure> {
        let identifiers: Vec<_> = hosts.iter().map(|host| Identifier::Dns(host.clone())).collect();
        let mut order = self.account.new_order(&NewOrder::new(&identifiers)).await?;
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            let host = authorization.identifier().to_string();
            let mut challenge =
                authorization.challenge(ChallengeType::Http01).ok_or(AcmeFailure::NoHttpChallenge(host))?;
            let answer = challenge.key_authorization();
            challenges.publish(&challenge.token, answer.as_str()).await.map_err(AcmeFailure::Storage)?;
            challenge.set_ready().await?;
        }
        let retries = RetryPolicy::default().timeout(POLL_TIMEOUT);
        let failure = match order.poll_ready(&retries).await {
            Ok(OrderStatus::Ready | OrderStatus::Valid) => None,
            Ok(status) => Some(AcmeFailure::Order(status)),
            Err(error) => Some(error.into()),
        };
        if let Some(failure) = failure {
            return Err(refusal(&mut order).await.unwrap_or(failure));
        }
        let private_key = Secret::new(order.finalize().await?);
        let chain = order.poll_certificate(&retries).await?;
        Ok(IssuedCertificate { chain, private_key })
    }
}

/// Finds out which host was not validated, and why.
async fn refusal(order: &mut instant_acme::Order) -> Option<AcmeFailure> {
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        authorization.refresh().await.ok()?;
        let reason = authorization.challenges.iter().find_map(|challenge| challenge.error.as_ref()?.detail.clone());
        if let Some(reason) = reason {
            return Some(AcmeFailure::Refused { host: authorization.identifier().to_string(), reason });
        }
    }
    None
}

#[derive(Clone)]
struct AuthorityClient {
    client: HttpClient,
    /// Seconds that the authority asked to wait when it last refused a request.
    retry_after: Arc<AtomicU64>,
}

impl AuthorityClient {
    /// Trusts the certificates in the file, or those that the system trusts.
    fn new(ca_file: Option<&Path>) -> Result<Self, AcmeFailure> {
        let roots = ca_file.map_or_else(|| Ok(system_roots()), roots_in).map_err(AcmeFailure::Roots)?;
        let client = HttpClient::new(roots).map_err(|error| AcmeFailure::Authority(error.to_string()))?;
        Ok(Self { client, retry_after: Arc::default() })
    }

    /// How long the authority asked to wait when it last refused a request; zero if it did not.
    fn retry_after(&self) -> Duration {
        Duration::from_secs(self.retry_after.load(Ordering::Relaxed))
    }

    async fn send(self, request: Request<BodyWrapper<Bytes>>) -> Result<BytesResponse, Error> {
        let host = request.uri().authority().map(ToString::to_string).unwrap_or_default();
        let unreachable = |why: String| Error::Other(format!("the authority {host} cannot be reached: {why}").into());
        if request.uri().scheme() != Some(&Scheme::HTTPS) {
            return Err(unreachable(format!("{} is not an https URL", request.uri())));
        }
        let request = request.map(|body| body.map_err(|never| match never {}).boxed_unsync());
        let response = timeout(REQUEST_TIMEOUT, self.client.fetch(request, MAX_RESPONSE_BYTES)).await;
        let response = response.map_err(|_| unreachable("it did not respond in time".to_owned()))?;
        let (parts, body) = response.map_err(unreachable)?.into_parts();
        if !parts.status.is_success() {
            self.retry_after.store(seconds_to_wait(&parts.headers).unwrap_or_default(), Ordering::Relaxed);
        }
        Ok(BytesResponse { parts, body: Box::new(body) })
    }
}

impl instant_acme::HttpClient for AuthorityClient {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        Box::pin(self.clone().send(request))
    }
}

/// Reads `Retry-After`: seconds, or a time, which is compared with the `Date` of the response.
fn seconds_to_wait(headers: &HeaderMap) -> Option<u64> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let retry_after = text(RETRY_AFTER)?;
    retry_after.parse().ok().or_else(|| {
        let time = |text| httpdate::parse_http_date(text).ok();
        Some(time(retry_after)?.duration_since(time(text(DATE)?)?).ok()?.as_secs())
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_authority_says_in_seconds_or_by_a_time_how_long_to_wait() {
        let wait = |retry_after: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(DATE, HeaderValue::from_static("Sun, 15 Nov 2026 12:00:00 GMT"));
            headers.insert(RETRY_AFTER, HeaderValue::from_static(retry_after));
            seconds_to_wait(&headers)
        };
        assert_eq!(wait("90"), Some(90));
        assert_eq!(wait("Sun, 15 Nov 2026 13:30:00 GMT"), Some(5400));
        assert_eq!(wait("Sun, 15 Nov 2026 11:30:00 GMT"), None);
        assert_eq!(wait("soon"), None);
        assert_eq!(seconds_to_wait(&HeaderMap::new()), None);
    }
}
