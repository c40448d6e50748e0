//! Checks what visitors get: the pages, the download, and a certificate that browsers trust.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::finding::{Finding, Findings, PROBE_TIMEOUT, failed, note, ok};
use crate::actions::{CertificateOrders, ImageStore, NewestImage, ReleaseCatalog, image_problem};
use crate::clock::Clock;
use crate::config::{CertificateSource, InvalidSettings, Settings};
use crate::domain::letters::ArchivedLetter;
use crate::domain::network::BaseUrl;
use crate::domain::releases::{Release, Releases};
use crate::domain::time::Timestamp;
use crate::probe::{Certificate, CertificateFailure};
use crate::site::{Content, MailTemplates, Policies, SampleText, Site, SiteFacts, SiteFailure};
use crate::store::Store;
use crate::tls::SiteCertificate;
use crate::web::built_site::try_build;

/// Builds the whole site, and adds what was found. Returns the site, and where downloads lead.
pub(super) fn check_site(
    settings: &Settings,
    base_url: &BaseUrl,
    releases: &Releases,
    letters: &[ArchivedLetter],
    findings: &mut Findings,
) -> Result<(Site, NewestImage), SiteFailure> {
    let content = Content::from_settings(settings)?;
    let facts = SiteFacts::read(&content)?;
    let newest_image = NewestImage::choose(settings.download_url.as_deref(), base_url, &facts.name);
    let policies = Policies::from_settings(settings, facts.waitlist);
    let (files, site) = try_build(&content, base_url, &newest_image, releases, letters, &policies)?;
    MailTemplates::read(&content, base_url.clone(), settings.postal_address.as_deref())?;
    let origin = settings
        .site_dir
        .as_deref()
        .map_or_else(|| "the built-in site".to_owned(), |folder| format!("with the files of {}", folder.display()));
    findings.add("site", ok(format!("{}, {origin}; all {files} pages and files can be built", facts.name)));
    for about_files in &site.notes {
        findings.add("site files", note(about_files));
    }
    let samples =
        site.sample_texts.iter().map(|SampleText { file, line, text }| format!("{file}, line {line}: {text}"));
    let samples: Vec<_> = samples.collect();
    let samples = (!samples.is_empty()).then(|| note(format!("Texts of a new site are left: {}", samples.join("; "))));
    findings.add("site texts", samples);
    Ok((site, newest_image))
}

pub(super) async fn check_release(
    images: &Result<ImageStore, InvalidSettings>,
    store: Option<&Store>,
    newest_image: &NewestImage,
) -> Result<Finding, Finding> {
    const PUBLISH: &str = "`porchlight release publish FILE.dmg --version 1.0.0` publishes one.";
    if let NewestImage::External(url) = newest_image {
        return Ok(ok(format!("downloads redirect to {url}")));
    }
    let Some(store) = store else {
        return Err(match newest_image {
            NewestImage::Preview(_) => note(format!("Downloads get a sample disk image. {PUBLISH}")),
            _ => failed(format!("Downloads are answered with 503: no release is known. {PUBLISH}")),
        });
    };
    let catalog = ReleaseCatalog::new(store.clone(), images.as_ref().map_err(failed)?.clone());
    let refreshed = catalog.refresh().await;
    refreshed.map_err(|failure| failed(format!("The published releases could not be read: {failure}.")))?;
    if let Some(version) = catalog.cached().unreadable().first() {
        return Err(failed(format!("The release {version} in the database is damaged, and is not offered.")));
    }
    let missing = image_problem(&catalog, newest_image).await;
    Ok(match (catalog.cached().newest(), missing) {
        (Some(Release { version, external_url: Some(url), .. }), None) => {
            ok(format!("{version} is the newest, at {url}"))
        }
        (Some(release), None) => ok(format!("{} is the newest, and {}", release.version, place(&catalog, release))),
        (Some(_), Some(missing)) => failed(format!("Downloads fail: {missing}.")),
        (None, Some(missing)) => failed(format!("Downloads are answered with 503: {missing}. {PUBLISH}")),
        (None, None) => note(format!("Downloads get a sample disk image. {PUBLISH}")),
    })
}

fn place(catalog: &ReleaseCatalog, release: &Release) -> String {
    match catalog.images() {
        ImageStore::Folder(_) => "its file can be read here".to_owned(),
        ImageStore::Bucket(bucket) => format!("{} can be read", bucket.object_name(release)),
    }
}

/// ACME clients renew earlier than this, so a certificate this close to its expiry was not renewed.
const RENEWAL_PERIOD: Duration = Duration::from_hours(21 * 24);

/// Checks the certificate that the service itself serves. Returns `None` if it speaks plain HTTP.
pub(super) async fn check_certificate(settings: &Settings, store: Option<&Store>, clock: &Clock) -> Option<Finding> {
    let (hosts, now) = (settings.host_names(&settings.public_url()), clock.now());
    let (from, certificate) = match &settings.tls.as_ref()?.certificate {
        CertificateSource::Files(files) => match SiteCertificate::read(files, &hosts) {
            Ok(certificate) => (files.chain.display().to_string(), Arc::new(certificate)),
            Err(failure) => return Some(failed(failure)),
        },
        CertificateSource::Acme(acme) => {
            let orders = CertificateOrders::new(acme, hosts, store?.clone(), clock.clone());
            let state = match orders.state().await {
                Ok(state) => state,
                Err(failure) => return Some(failed(failure.sentence("The certificate is not known"))),
            };
            let failure = state.failure.map(|failure| format!(" {}: {failure}.", acme.directory)).unwrap_or_default();
            match state.certificate {
                None => return Some(note(format!("There is no certificate yet.{failure}"))),
                Some(certificate) if !failure.is_empty() && now <= certificate.expires() => {
                    let date = certificate.expires().date();
                    return Some(note(format!("It is valid until {date} and not renewed yet.{failure}")));
                }
                Some(certificate) => (acme.directory.clone(), certificate),
            }
        }
    };
    let expires = certificate.expires();
    Some(if expires < now {
        failed(format!("The certificate from {from} expired on {}.", expires.date()))
    } else if certificate.is_renewal_overdue(now) {
        note(format!("The certificate from {from} expires on {}. Renew it before that.", expires.date()))
    } else {
        ok(format!("from {from}, valid until {}", expires.date()))
    })
}

/// Returns `None` if the site does not use https.
pub(super) async fn check_https(base_url: &BaseUrl, now: Timestamp) -> Option<Finding> {
    if !base_url.is_https() {
        return None;
    }
    let (host, port) = base_url.host_and_port();
    let site = base_url.as_str().trim_start_matches("https://");
    let probed = timeout(PROBE_TIMEOUT, Certificate::probe(&host, port, now, RENEWAL_PERIOD)).await;
    let timed_out = |_| Err(CertificateFailure::Unreachable("it did not respond in time".to_owned()));
    let detail = match probed.unwrap_or_else(timed_out) {
        Ok(Certificate::Valid) => return Some(ok(format!("{site} has a valid certificate"))),
        Ok(Certificate::ExpiresAt(end)) => {
            format!("The certificate of {site} expires on {}. Renew it before that.", end.date())
        }
        Err(CertificateFailure::Invalid(fault)) => {
            format!("The certificate of {site} is not valid: {fault}. Browsers will show a warning.")
        }
        Err(CertificateFailure::Handshake(error)) => format!("The TLS handshake with {site} failed: {error}."),
        Err(CertificateFailure::Unreachable(error)) => {
            format!("{site} cannot be reached from here: {error}. Check whether it can be reached from elsewhere.")
        }
        Err(failure @ CertificateFailure::NoAuthorities) => {
            format!("{site} could not be checked: {failure}. Install ca-certificates, or set SSL_CERT_FILE.")
        }
    };
    Some(note(detail))
}
