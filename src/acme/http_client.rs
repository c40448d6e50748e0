//! A small https client for the few requests of an order: one connection for each.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::{BodyExt, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::AcmeFailure;

/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Responses of an authority are small.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;

#[derive(Clone)]
pub(super) struct AuthorityClient(Arc<ClientConfig>);

impl AuthorityClient {
    /// Trusts the certificates in the file, or those that the system trusts.
    ///
    /// # Errors
    /// When there is none.
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
        Ok(Self(Arc::new(config.with_root_certificates(roots).with_no_client_auth())))
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

        let stream = TcpStream::connect((name.to_str().as_ref(), authority.port_u16().unwrap_or(443))).await?;
        let stream = TlsConnector::from(self.0).connect(name, stream).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        let connection = tokio::spawn(connection);
        let response = sender.send_request(request).await.map_err(io::Error::other)?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await.map_err(io::Error::other)?.to_bytes();
        connection.abort();
        Ok(Response::from_parts(head, body))
    }
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
