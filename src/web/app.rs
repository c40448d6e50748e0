//! The state that all handlers share (axum `State`): the service behind the actions, and the built site.

use std::sync::{Arc, PoisonError, RwLock};

use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::built_site::BuiltSite;
use super::headers::hsts;
use super::initiator::reader_of;
use super::limits::{ClientLimits, ClientSlot, OverLimit};
use super::metrics::Metrics;
use super::problem::Problem;
use super::refusal::{ClientLimit, Refusal};
use crate::actions::{ReleaseCatalog, Service};
use crate::config::Settings;
use crate::domain::base_url::BaseUrl;
use crate::domain::client::Peer;
use crate::domain::host_name::HostName;
use crate::domain::reads::Reading;
use crate::site::{Content, Policies, SiteFailure};

/// The shared state of all handlers. Cheap to clone.
#[derive(Clone, Debug)]
pub struct App(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    service: Service,
    base_url: BaseUrl,
    allowed_origins: Vec<String>,
    policies: Policies,
    hsts: Option<HeaderValue>,
    also_hosts: Vec<HostName>,
    answers_challenges: bool,
    built: RwLock<Arc<BuiltSite>>,
    metrics: Metrics,
    limits: ClientLimits,
    images: Arc<Semaphore>,
}

impl App {
    /// Builds every page and file. At most `max_open_images` disk images are sent at once.
    pub fn new(
        settings: &Settings,
        base_url: BaseUrl,
        service: Service,
        content: &Content,
        max_open_images: usize,
    ) -> Result<Self, SiteFailure> {
        let releases = service.catalog.cached();
        let policies = Policies::from_settings(settings);
        let built = BuiltSite::new(content, &base_url, &service.newest_image, &releases, &policies)?;
        let metrics = Metrics::new();
        let hsts = hsts(&base_url, settings.hsts_subdomains);
        Ok(Self(Arc::new(Inner {
            hsts,
            also_hosts: settings.also_hosts.clone(),
            answers_challenges: settings.uses_acme(),
            service,
            base_url,
            allowed_origins: settings.allowed_origins.clone(),
            policies,
            built: RwLock::new(Arc::new(built)),
            limits: ClientLimits::new(settings.clients.clone(), metrics.clone()),
            metrics,
            images: Arc::new(Semaphore::new(max_open_images)),
        })))
    }

    /// Builds every page and file again. On failure the present ones stay.
    pub fn rebuild(&self, content: &Content) -> Result<(), SiteFailure> {
        let Inner { service, base_url, policies, .. } = &*self.0;
        let built = BuiltSite::new(content, base_url, &service.newest_image, &service.catalog.cached(), policies)?;
        *self.0.built.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(built);
        Ok(())
    }

    pub fn catalog(&self) -> &ReleaseCatalog {
        &self.0.service.catalog
    }

    pub(crate) fn service(&self) -> &Service {
        &self.0.service
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// Counts a connection of this peer until the slot is dropped. Returns `None` if it has too many.
    pub fn open_connection(&self, peer: Peer) -> Option<ClientSlot> {
        self.0.limits.open_connection(peer, self.0.service.clock.now())
    }

    /// Counts a connection of this peer to the ops listener until the slot is dropped. Returns `None` if it has too many.
    pub fn open_ops_connection(&self, peer: Peer) -> Option<ClientSlot> {
        self.0.limits.open_ops_connection(peer, self.0.service.clock.now())
    }

    /// Counts a request of this peer over HTTP/2 until the slot is dropped. Returns `None` if it has too many in flight.
    pub fn open_request(&self, peer: Peer) -> Option<ClientSlot> {
        self.0.limits.open_request(peer, self.0.service.clock.now())
    }

    /// Allows a disk image to be open until the permit is dropped. Returns `None` if too many are.
    pub(crate) fn open_image(&self) -> Option<OwnedSemaphorePermit> {
        let permit = Arc::clone(&self.0.images).try_acquire_owned().ok();
        if permit.is_none() {
            self.0.limits.record(Refusal::OpenImages, self.0.service.clock.now());
        }
        permit
    }

    /// Logs, once an hour, that a request came through a proxy which no setting names.
    pub(crate) fn log_unconfigured_proxy(&self, peer: Peer, headers: &HeaderMap) {
        let Inner { service, limits, .. } = &*self.0;
        if limits.shows_unconfigured_proxy(peer, headers) {
            limits.log_unconfigured_proxy(service.clock.now());
        }
    }

    /// Counts a read by its day and reader. Nothing else of the request is kept.
    pub(crate) fn count_read(&self, reading: Reading, headers: &HeaderMap) {
        let reader = reader_of(headers, reading == Reading::Markdown);
        let Service { count_buffer, clock, .. } = &self.0.service;
        count_buffer.read(reader, reading, clock.now());
    }

    /// Counts a request of a client.
    pub(crate) fn count_request(&self, limit: ClientLimit, head: &Parts) -> Result<(), OverLimit> {
        self.0.limits.count(limit, head, self.0.service.clock.now())
    }

    /// How often this instance refused a request or a connection for this reason.
    pub(crate) fn refused(&self, refusal: Refusal) -> u64 {
        match refusal {
            Refusal::WriterOverload => self.0.service.writer.refused(),
            _ => self.0.metrics.refused(refusal),
        }
    }

    /// Refuses a request of a client that has exceeded a limit.
    pub(crate) fn refuse(&self, over_limit: OverLimit) -> Problem {
        self.0.limits.refuse(over_limit, self.0.service.clock.now())
    }

    /// Whether the authority of the site's certificate asks for answers over plain HTTP.
    pub(crate) fn answers_challenges(&self) -> bool {
        self.0.answers_challenges
    }

    /// Whether a `Host` header names a further host of the site.
    pub(crate) fn is_further_host(&self, host: &str) -> bool {
        self.0.also_hosts.iter().any(|further| further.is_host_of(host))
    }

    /// `Strict-Transport-Security`, if the site is served over https.
    pub(crate) fn hsts(&self) -> Option<&HeaderValue> {
        self.0.hsts.as_ref()
    }

    pub(crate) fn base_url(&self) -> &BaseUrl {
        &self.0.base_url
    }

    pub(crate) fn built(&self) -> Arc<BuiltSite> {
        Arc::clone(&self.0.built.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn allows_origin(&self, origin: &str) -> bool {
        origin == self.0.base_url.as_str() || self.0.allowed_origins.iter().any(|allowed| allowed == origin)
    }
}
