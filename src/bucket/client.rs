//! A small HTTP client: one connection for each request, with TLS if the URL asks for it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use super::BucketFailure;

/// How long it may take to connect, with TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Read buffer per connection, which bounds the memory of a download whose client is slow.
const READ_BUFFER_SIZE: usize = 64 * 1024;

pub(super) type RequestBody = UnsyncBoxBody<Bytes, std::io::Error>;

#[derive(Clone)]
pub(super) struct Client {
    tls: TlsConnector,
}

impl Client {
    /// Trusts the certificates that the system trusts.
    pub(super) fn new() -> Result<Self, rustls::Error> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let config = ClientConfig::builder_with_provider(ring::default_provider().into());
        let config = config.with_safe_default_protocol_versions()?.with_root_certificates(roots).with_no_client_auth();
        Ok(Self { tls: TlsConnector::from(Arc::new(config)) })
    }

    /// Sends the request, whose URL is that of its headers, and returns the response as soon as it begins.
    pub(super) async fn send(
        &self,
        url: &Url,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, BucketFailure> {
        let unavailable = |why: String| BucketFailure::Unavailable(why);
        let connected = timeout(CONNECT_TIMEOUT, connect(url)).await;
        let stream = connected
            .map_err(|_| unavailable("it does not accept a connection".to_owned()))?
            .map_err(|error| unavailable(error.to_string()))?;
        if url.scheme() == "http" {
            return exchange(stream, request).await;
        }
        let name = match url.host() {
            Some(Host::Domain(name)) => ServerName::try_from(name.to_owned()).ok(),
            Some(Host::Ipv4(address)) => Some(ServerName::from(std::net::IpAddr::from(address))),
            Some(Host::Ipv6(address)) => Some(ServerName::from(std::net::IpAddr::from(address))),
            None => None,
        };
        let name = name.ok_or_else(|| unavailable("its host name is not valid".to_owned()))?;
        let encrypted = timeout(CONNECT_TIMEOUT, self.tls.connect(name, stream)).await;
        let stream = encrypted
            .map_err(|_| unavailable("it does not answer the TLS handshake".to_owned()))?
            .map_err(|error| unavailable(error.to_string()))?;
        exchange(stream, request).await
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

async fn connect(url: &Url) -> std::io::Result<TcpStream> {
    let port = url.port_or_known_default().unwrap_or(443);
    match url.host() {
        Some(Host::Domain(name)) => TcpStream::connect((name, port)).await,
        Some(Host::Ipv4(address)) => TcpStream::connect((address, port)).await,
        Some(Host::Ipv6(address)) => TcpStream::connect((address, port)).await,
        None => Err(std::io::ErrorKind::InvalidInput.into()),
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<RequestBody>,
) -> Result<Response<Incoming>, BucketFailure> {
    let failed = |error: hyper::Error| BucketFailure::Unavailable(error_chain(&error));
    let handshake = http1::Builder::new().max_buf_size(READ_BUFFER_SIZE).handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.map_err(failed)?;
    // It ends with the response, or when that is dropped.
    tokio::spawn(connection);
    sender.send_request(request).await.map_err(failed)
}

/// An error of hyper says only together with its sources what happened.
pub(super) fn error_chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
