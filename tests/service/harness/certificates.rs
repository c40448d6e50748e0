//! A certificate authority, the certificates that it issues, and a TLS server that presents one.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use porchlight::clock::Clock;
use porchlight::domain::time::Timestamp;
use rcgen::{BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, Stream};

const DAY: Duration = Duration::from_hours(24);

/// Trusted only by processes whose `SSL_CERT_FILE` names it.
pub struct Authority {
    folder: tempfile::TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, in memory and as files.
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    folder: tempfile::TempDir,
}

/// A server on a port of its own.
pub struct Site {
    port: u16,
}

fn params(names: &[&str], from: Timestamp, until: Timestamp) -> CertificateParams {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("names");
    let date = |at: Timestamp| date_time_ymd(1970, 1, 1) + Timestamp::from_unix_millis(0).until(at);
    (params.not_before, params.not_after) = (date(from), date(until));
    params
}

fn file(folder: &tempfile::TempDir, name: &str, text: &str) {
    std::fs::write(folder.path().join(name), text).expect("a file");
}

impl Authority {
    pub fn new() -> Self {
        let (now, folder) = (Clock::System.now(), tempfile::tempdir().expect("a folder"));
        let mut params = params(&["localhost"], now.before(DAY * 365), now.after(DAY * 365));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, folder.path().display().to_string());
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority");
        file(&folder, "authority", &issuer.pem());
        Self { folder, issuer }
    }

    /// The value for `SSL_CERT_FILE`.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("authority")
    }

    /// Issues a certificate that is valid from yesterday for three months.
    pub fn issue(&self, name: &str) -> Identity {
        let now = Clock::System.now();
        self.issue_for(name, now.before(DAY), now.after(DAY * 90))
    }

    /// The self-signed certificate of the authority itself.
    pub fn identity(&self) -> Identity {
        Identity::new(self.issuer.as_ref(), self.issuer.key())
    }

    /// Issues a certificate that was and is valid for a year, whatever clock is asked.
    pub fn issue_to(&self, names: &[&str]) -> Identity {
        let now = Clock::System.now();
        self.issue_as(names, now.before(DAY * 365), now.after(DAY * 365))
    }

    pub fn issue_for(&self, name: &str, from: Timestamp, until: Timestamp) -> Identity {
        self.issue_as(&[name], from, until)
    }

    fn issue_as(&self, names: &[&str], from: Timestamp, until: Timestamp) -> Identity {
        let key = KeyPair::generate().expect("a key");
        let certificate = params(names, from, until).signed_by(&key, &self.issuer).expect("a certificate");
        Identity::new(&certificate, &key)
    }
}

impl Identity {
    fn new(certificate: &Certificate, key: &KeyPair) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        file(&folder, "certificate", &certificate.pem());
        file(&folder, "key", &key.serialize_pem());
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        Self { certificate: certificate.der().clone(), key, folder }
    }

    fn server_config(&self) -> Arc<ServerConfig> {
        let config = ServerConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], self.key.clone_key())
            .expect("a certificate and its key");
        Arc::new(config)
    }

    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("certificate")
    }

    pub fn key(&self) -> PathBuf {
        self.folder.path().join("key")
    }
}

impl Site {
    /// Says nothing after the handshake.
    pub fn start(identity: &Identity) -> Self {
        let config = identity.server_config();
        Self::serve(move |mut connection| {
            let mut tls = ServerConnection::new(config.clone()).expect("a TLS connection");
            let _ = Stream::new(&mut tls, &mut connection).read_to_end(&mut Vec::new());
        })
    }

    /// Sends the same response to every request.
    pub fn start_with_response(identity: &Identity, response: &'static str) -> Self {
        let config = identity.server_config();
        Self::serve(move |mut connection| {
            let mut tls = ServerConnection::new(config.clone()).expect("a TLS connection");
            let mut stream = Stream::new(&mut tls, &mut connection);
            let _ = stream.read(&mut [0; 4096]).and_then(|_| stream.write_all(response.as_bytes()));
        })
    }

    /// Sends the same plain-text response to every client.
    pub fn start_without_tls() -> Self {
        Self::serve(|mut connection| {
            let _ = connection.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        })
    }

    fn serve(mut handle: impl FnMut(std::net::TcpStream) + Send + 'static) -> Self {
        let listener = TcpListener::bind("0.0.0.0:0").expect("a listener");
        let port = listener.local_addr().expect("an address").port();
        thread::spawn(move || listener.incoming().for_each(|connection| handle(connection.expect("a connection"))));
        Self { port }
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}
