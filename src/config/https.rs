//! Settings of https: the certificate, the redirect listener and further host names.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::text::{InvalidSettings, Texts, both, missing, parse_addresses, parse_list};
use crate::domain::mail::EmailAddress;
use crate::domain::network::{BaseUrl, HostName, parse_web_url};

/// Without it, the service speaks plain HTTP, and a proxy speaks https.
#[derive(Clone, Debug)]
pub struct Tls {
    pub certificate: CertificateSource,
    /// Plain HTTP listeners that redirect to https.
    pub redirect_listen: Vec<SocketAddr>,
}

/// Where the certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateSource {
    Files(CertificateFiles),
    Acme(AcmeSettings),
}

/// An authority that issues certificates by ACME.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeSettings {
    pub email: String,
    /// The URL of the authority's directory.
    pub directory: String,
    /// The root by which the authority's own https is trusted. `None`: those of the system.
    pub ca_file: Option<PathBuf>,
}

/// A certificate of one's own, in PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, followed by those of its issuers.
    pub chain: PathBuf,
    pub key: PathBuf,
}

const HTTPS_PORT: u16 = 443;
const HTTP_PORT: u16 = 80;

impl Tls {
    /// `listen` are the addresses of the public listener, if they are set.
    pub(super) fn parse(
        texts: &mut Texts,
        base_url: Option<&BaseUrl>,
        listen: Option<&[SocketAddr]>,
    ) -> Result<Option<Self>, InvalidSettings> {
        let redirect_listen = texts.take("redirect_listen");
        let files = CertificateFiles::parse(texts)?;
        let acme = AcmeSettings::parse(texts)?;
        let certificate = match (files, acme) {
            (Some(_), Some(_)) => {
                return Err(InvalidSettings::new("acme_email", "`tls_cert` is set as well; remove one of them"));
            }
            (Some(files), None) => CertificateSource::Files(files),
            (None, Some(acme)) => CertificateSource::Acme(acme),
            (None, None) => match redirect_listen {
                Some(text) if text != OFF => {
                    return Err(InvalidSettings::new(
                        "redirect_listen",
                        "it redirects to https, which needs `acme_email`, or `tls_cert` and `tls_key`",
                    ));
                }
                _ => return Ok(None),
            },
        };
        check_base_url(base_url, &certificate)?;
        let listen = listen.map_or_else(Self::default_listen, <[_]>::to_vec);
        let redirect_listen = match redirect_listen {
            None => default_redirect(&listen),
            Some(text) if text == OFF => Vec::new(),
            Some(text) => parse_addresses(&text).map_err(|why| InvalidSettings::new("redirect_listen", why))?,
        };
        if redirect_listen.is_empty() && matches!(certificate, CertificateSource::Acme(_)) {
            let reason = "the authority validates the site by plain HTTP; set `redirect_listen` to where port 80 leads";
            return Err(InvalidSettings::new("acme_email", reason));
        }
        Ok(Some(Self { certificate, redirect_listen }))
    }

    /// All addresses of the machine, at the port of https.
    pub(super) fn default_listen() -> Vec<SocketAddr> {
        vec![SocketAddr::from(([0, 0, 0, 0], HTTPS_PORT)), SocketAddr::from(([0_u16; 8], HTTPS_PORT))]
    }
}

const OFF: &str = "off";

/// Port 80 beside every address that listens on 443.
fn default_redirect(listen: &[SocketAddr]) -> Vec<SocketAddr> {
    let public = listen.iter().filter(|address| address.port() == HTTPS_PORT);
    public.map(|address| SocketAddr::new(address.ip(), HTTP_PORT)).collect()
}

impl CertificateFiles {
    fn parse(texts: &mut Texts) -> Result<Option<Self>, InvalidSettings> {
        let files = both(("tls_cert", texts.take("tls_cert")), ("tls_key", texts.take("tls_key")))?;
        Ok(files.map(|(chain, key)| Self { chain: chain.into(), key: key.into() }))
    }
}

impl AcmeSettings {
    fn parse(texts: &mut Texts) -> Result<Option<Self>, InvalidSettings> {
        let email = texts.parse("acme_email", |text| {
            EmailAddress::parse(text).map_err(|why| format!("it is not an email address: {why}"))
        })?;
        let directory = texts.parse("acme_directory", |url| {
            parse_web_url(url).ok().filter(|url| url.starts_with("https://")).ok_or("it is not an https URL")
        })?;
        let ca_file = texts.take("acme_ca_file");
        let Some(email) = email else {
            let unused = [("acme_directory", directory.is_some()), ("acme_ca_file", ca_file.is_some())];
            return match unused.into_iter().find(|(_, is_set)| *is_set) {
                Some((name, _)) => Err(missing("acme_email", name)),
                None => Ok(None),
            };
        };
        let directory = directory.unwrap_or_else(|| LETS_ENCRYPT.to_owned());
        Ok(Some(Self { email: email.as_typed().to_owned(), directory, ca_file: ca_file.map(Into::into) }))
    }
}

const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// Links would lead to another scheme, or browsers would not accept the certificate.
fn check_base_url(base_url: Option<&BaseUrl>, certificate: &CertificateSource) -> Result<(), InvalidSettings> {
    let setting = match certificate {
        CertificateSource::Files(_) => "tls_cert",
        CertificateSource::Acme(_) => "acme_email",
    };
    let is_public = |url: &BaseUrl| !url.is_ip_address() && !url.is_loopback();
    let reason = match base_url {
        None => "has to be set to the https URL of the site",
        Some(url) if !url.is_https() => "has to start with https://",
        Some(url) if is_public(url) => return Ok(()),
        Some(url) if url.is_loopback() && matches!(certificate, CertificateSource::Files(_)) => return Ok(()),
        Some(_) => "needs a public host name",
    };
    Err(InvalidSettings::new("base_url", format!("with `{setting}` it {reason}")))
}

/// Parses `also_hosts`, host names separated by commas.
pub(super) fn parse_hosts(text: &str, base_url: Option<&BaseUrl>) -> Result<Vec<HostName>, String> {
    let mut hosts = parse_list(text, HostName::parse).map_err(|why| why.to_string())?;
    if let Some(host) = hosts.iter().find(|host| base_url.is_some_and(|url| url.host() == host.as_str())) {
        return Err(format!("{host} is the host of `base_url`, and would redirect to itself"));
    }
    hosts.sort_by(|a, b| a.as_str().cmp(b.as_str()));
    hosts.dedup();
    Ok(hosts)
}
