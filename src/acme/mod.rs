//! The only module that speaks ACME (RFC 8555): orders a certificate from an authority. Layer 1.
//!
//! Knows no database: where accounts and answers to challenges are kept is up to the caller.

mod http_client;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, ChallengeType, Error, Identifier, NewAccount, NewOrder,
    OrderStatus, RetryPolicy,
};

use self::http_client::AuthorityClient;
use crate::config::Secret;

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
#[derive(Debug)]
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
