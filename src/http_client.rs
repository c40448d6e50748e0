//! The HTTP client of the service, with TLS where the URL asks for it: for the bucket, the ACME authority and the ops listener.
//!
//! Connections are kept for a moment and used again. Time limits for a response are the caller's.

use std::error::Error;
use std::io;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// How long it may take to connect. The addresses of a host share it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection is kept for a further request. Servers close theirs later.
const KEEP_TIMEOUT: Duration = Duration::from_secs(4);
/// Read buffer per connection, which bounds the memory of a download whose client is slow.
const READ_BUFFER_SIZE: usize = 64 * 1024;

pub type RequestBody = UnsyncBoxBody<Bytes, io::Error>;

/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct HttpClient(Client<HttpsConnector<HttpConnector>, RequestBody>);

impl HttpClient {
    /// Trusts these roots.
    pub fn new(roots: RootCertStore) -> Result<Self, rustls::Error> {
        let config = ClientConfig::builder_with_provider(ring::default_provider().into());
        let config = config.with_safe_default_protocol_versions()?.with_root_certificates(roots).with_no_client_auth();
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let https = HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1();
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(KEEP_TIMEOUT)
            .http1_max_buf_size(READ_BUFFER_SIZE)
            .build(https.wrap_connector(connector));
        Ok(Self(client))
    }

    /// Returns the response as soon as it begins, or the reason why there is none.
    pub async fn send(&self, request: Request<RequestBody>) -> Result<Response<Incoming>, String> {
        self.0.request(request).await.map_err(|error| cause(&error))
    }

    /// Returns the whole response, which may have at most `max_bytes` bytes.
    pub async fn fetch(&self, request: Request<RequestBody>, max_bytes: usize) -> Result<Response<Bytes>, String> {
        let (head, body) = self.send(request).await?.into_parts();
        let body = Limited::new(body, max_bytes).collect().await.map_err(|error| cause(&*error))?;
        Ok(Response::from_parts(head, body.to_bytes()))
    }
}

pub fn empty_body() -> RequestBody {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// The roots that the system trusts.
pub fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// The roots in a file in PEM format, or the reason why there are none.
pub fn roots_in(file: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = certificates.map_err(|error| format!("{}: {error}", file.display()))?;
    if roots.add_parsable_certificates(certificates).0 == 0 {
        return Err(format!("{} has no certificate in PEM format", file.display()));
    }
    Ok(roots)
}

/// What happened, which the last source of an error of hyper says.
pub fn cause(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}
