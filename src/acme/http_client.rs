//! A small https client for the few requests of an order: one connection for each.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{DATE, HOST, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Request, Response, Uri};
use http_body_util::{BodyExt, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::AcmeFailure;

/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long one address may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Responses of an authority are small.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;

#[derive(Clone)]
pub(super) struct AuthorityClient {
    tls: Arc<ClientConfig>,
    /// Seconds that the authority asked to wait when it last refused a request.
    retry_after: Arc<AtomicU64>,
}

impl AuthorityClient {
    /// Trusts the certificates in the file, or those that the system trusts.
    pub(super) fn new(ca_file: Option<&Path>) -> Result<Self, AcmeFailure> {
        let mut roots = RootCertStore::empty();
        match ca_file {
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
            Some(path) => {
                let unusable = |error| AcmeFailure::Roots(format!("{}: {error}", path.display()));
                let certificates = CertificateDer::pem_file_iter(path).map_err(unusable)?;
                let certificates = certificates.collect::<Result<Vec<_>, _>>().map_err(unusable)?;
                if roots.add_parsable_certificates(certificates).0 == 0 {
                    return Err(AcmeFailure::Roots(format!("{} has no certificate in PEM format", path.display())));
                }
            }
        }
        let config = ClientConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .map_err(|error| AcmeFailure::Authority(error.to_string()))?;
        let tls = Arc::new(config.with_root_certificates(roots).with_no_client_auth());
        Ok(Self { tls, retry_after: Arc::default() })
    }

    /// How long the authority asked to wait when it last refused a request; zero if it did not.
    pub(super) fn retry_after(&self) -> Duration {
        Duration::from_secs(self.retry_after.load(Ordering::Relaxed))
    }

    async fn send(self, mut request: Request<BodyWrapper<Bytes>>) -> io::Result<Response<Bytes>> {
        let uri = request.uri().clone();
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, format!("{uri} is not an https URL"));
        let authority = uri.authority().filter(|_| uri.scheme_str() == Some("https")).ok_or_else(invalid)?;
        let name = ServerName::try_from(authority.host().trim_matches(['[', ']']).to_owned()).map_err(|_| invalid())?;
        let host = HeaderValue::from_str(authority.as_str()).map_err(io::Error::other)?;
        request.headers_mut().insert(HOST, host);
        let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        *request.uri_mut() = path.parse::<Uri>().map_err(io::Error::other)?;

        let stream = connect(&name.to_str(), authority.port_u16().unwrap_or(443)).await?;
        let stream = TlsConnector::from(self.tls).connect(name, stream).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        let connection = tokio::spawn(connection);
        let response = sender.send_request(request).await.map_err(io::Error::other)?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await.map_err(io::Error::other)?.to_bytes();
        connection.abort();
        if !head.status.is_success() {
            self.retry_after.store(seconds_to_wait(&head.headers).unwrap_or_default(), Ordering::Relaxed);
        }
        Ok(Response::from_parts(head, body))
    }
}

/// Tries the addresses of the host one after another. One that does not respond leaves time for the others.
async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in lookup_host((host, port)).await? {
        match timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => failure = error,
            Err(_) => failure = io::Error::new(io::ErrorKind::TimedOut, format!("{address} does not respond")),
        }
    }
    Err(failure)
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

impl HttpClient for AuthorityClient {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let (client, host) = (self.clone(), request.uri().authority().map(ToString::to_string).unwrap_or_default());
        Box::pin(async move {
            let cannot_reach =
                |why: String| Error::Other(format!("the authority {host} cannot be reached: {why}").into());
            match timeout(TIMEOUT, client.send(request)).await {
                Ok(Ok(response)) => {
                    let (parts, body) = response.into_parts();
                    Ok(BytesResponse { parts, body: Box::new(body) })
                }
                Ok(Err(error)) => Err(cannot_reach(error.to_string())),
                Err(_) => Err(cannot_reach("it did not respond in time".to_owned())),
            }
        })
    }
}

#[cfg(test)]
mod tests {
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
