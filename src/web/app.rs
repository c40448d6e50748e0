//! The state that all handlers share (axum `State`): the service behind the actions, and the built site.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use http::header::USER_AGENT;
use http::{HeaderMap, HeaderValue, Request};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::built_site::BuiltSite;
use super::headers::hsts;
use super::initiator::reader_of;
use super::limits::ClientLimits;
use super::metrics::Metrics;
use super::refusal::Refusal;
use super::wrong_tokens::WrongTokens;
use crate::actions::{self, Service};
use crate::config::{Desk, Settings};
use crate::domain::limits::MAX_TOKEN_LOOKUPS;
use crate::domain::mail::Mailbox;
use crate::domain::network::{BaseUrl, HostName, Peer};
use crate::domain::statistics::{Reading, UpdateCheck};
use crate::site::{Content, CurrentMailTemplates, MailTemplates, Policies, Site, SiteFailure};

/// The shared state of all handlers.
pub type App = Arc<AppState>;

#[derive(Debug)]
pub struct AppState {
    pub(crate) service: Service,
    pub(crate) base_url: BaseUrl,
    allowed_origins: Vec<String>,
    policies: Policies,
    /// `Strict-Transport-Security`, if the site is served over https.
    pub(crate) hsts: Option<HeaderValue>,
    also_hosts: Vec<HostName>,
    /// Whether HTTP-01 challenges of an ACME authority are answered.
    pub(crate) answers_challenges: bool,
    built: RwLock<Arc<BuiltSite>>,
    /// Held while the site is built again, so that no build replaces that of a later state.
    rebuilding: Mutex<()>,
    pub(crate) metrics: Metrics,
    pub(crate) limits: ClientLimits,
    pub(crate) content: Content,
    /// Has the site read again.
    pub read_again: Notify,
    /// Whoever waits is told that it was built again.
    pub(crate) rebuilt: Notify,
    pub mail_templates: CurrentMailTemplates,
    images: Arc<Semaphore>,
    pub(crate) token_lookups: Semaphore,
    /// Those of the desk are apart, so that nobody who guesses them holds up readers who unsubscribe.
    pub(crate) desk_lookups: Semaphore,
    pub(crate) settings: Settings,
    pub(crate) wrong_tokens: WrongTokens,
    /// Held while the checks run for a page of the desk: they ask other servers.
    pub(crate) checking: tokio::sync::Mutex<()>,
    /// Cancelled when the service stops.
    pub stopping: CancellationToken,
}

impl AppState {
    /// Builds every page and file. At most `max_open_images` disk images are sent at once.
    pub fn build(
        settings: &Settings,
        policies: Policies,
        base_url: BaseUrl,
        service: Service,
        content: &Content,
        max_open_images: usize,
    ) -> Result<App, SiteFailure> {
        let (releases, letters) = (service.catalog.cached(), service.letters.cached());
        let newest_image = &service.newest_image;
        let built = BuiltSite::new(content, &base_url, newest_image, &releases, &letters, &policies, None)?;
        log_notes(&built);
        let mail_templates = MailTemplates::read(content, base_url.clone(), settings.postal_address.as_deref())?;
        let metrics = Metrics::new();
        let hsts = hsts(&base_url, settings.hsts_subdomains);
        Ok(Arc::new(Self {
            hsts,
            also_hosts: settings.also_hosts.clone(),
            answers_challenges: settings.uses_acme(),
            limits: ClientLimits::new(settings.clients.clone(), metrics.clone(), service.clock.clone()),
            service,
            base_url,
            allowed_origins: settings.allowed_origins.clone(),
            policies,
            content: content.clone(),
            read_again: Notify::new(),
            rebuilt: Notify::new(),
            mail_templates: CurrentMailTemplates::new(mail_templates),
            built: RwLock::new(Arc::new(built)),
            rebuilding: Mutex::default(),
            metrics,
            images: Arc::new(Semaphore::new(max_open_images)),
            token_lookups: Semaphore::new(MAX_TOKEN_LOOKUPS),
            desk_lookups: Semaphore::new(MAX_TOKEN_LOOKUPS),
            settings: settings.clone(),
            wrong_tokens: WrongTokens::new(),
            checking: tokio::sync::Mutex::default(),
            stopping: CancellationToken::new(),
        }))
    }

    /// The files of the site.
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// What the makers still have to do, one sentence for each step.
    pub fn setup_steps(&self) -> Vec<String> {
        let Service { newest_image, catalog, forwards_messages, .. } = &self.service;
        let Site { facts, sample_texts, .. } = &self.built().site;
        actions::setup_steps(facts, sample_texts, newest_image, &catalog.cached(), &self.base_url, *forwards_messages)
    }

    /// Builds every page and file again. On failure the present ones stay.
    pub fn rebuild(&self, keeps_waitlist: bool) -> Result<(), SiteFailure> {
        let _one_at_a_time = self.rebuilding.lock().unwrap_or_else(PoisonError::into_inner);
        let Self { content, service, base_url, policies, .. } = self;
        let policies = Policies { keeps_waitlist, ..policies.clone() };
        let Service { newest_image, catalog, letters, .. } = service;
        let (before, releases, letters) = (self.built(), catalog.cached(), letters.cached());
        let built = BuiltSite::new(content, base_url, newest_image, &releases, &letters, &policies, Some(&before))?;
        let postal_address = self.settings.postal_address.as_deref();
        self.mail_templates.replace(MailTemplates::read(content, base_url.clone(), postal_address)?);
        log_notes(&built);
        log_sample_texts(&built);
        *self.built.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(built);
        self.rebuilt.notify_waiters();
        Ok(())
    }

    /// Allows a disk image to be open until the permit is dropped. Returns `None` if too many are.
    pub(crate) fn open_image(&self) -> Option<OwnedSemaphorePermit> {
        let permit = Arc::clone(&self.images).try_acquire_owned().ok();
        if permit.is_none() {
            self.limits.record(Refusal::OpenImages);
        }
        permit
    }

    /// Counts a read by its day and reader. Nothing else of the request is kept.
    pub(crate) fn count_read(&self, reading: Reading, headers: &HeaderMap) {
        let reader = reader_of(headers, reading == Reading::Markdown);
        let Service { count_buffer, clock, .. } = &self.service;
        count_buffer.read(reader, reading, clock.now());
    }

    /// Counts a request of the appcast if it comes from Sparkle. Nothing else of the request is kept. Until the releases are
    /// known, nothing is counted, because every version would be taken for one that was never published.
    pub(crate) fn count_update_check<B>(&self, request: &Request<B>) {
        let Service { count_buffer, catalog, clock, .. } = &self.service;
        let user_agent = request.headers().get(USER_AGENT).map(HeaderValue::as_bytes).unwrap_or_default();
        if let Ok(releases) = catalog.known()
            && let Some(check) = UpdateCheck::parse(user_agent, request.uri().query(), &releases)
        {
            count_buffer.update_checked(check, clock.now());
        }
    }

    /// How often this instance refused a request or a connection for this reason.
    pub(crate) fn refused(&self, refusal: Refusal) -> u64 {
        match refusal {
            Refusal::WriterOverload => self.service.writer.refused(),
            _ => self.metrics.refused(refusal),
        }
    }

    /// Whether a peer of the public listener reaches the desk: its token is not sent in clear, as far as we can know.
    pub(crate) fn opens_desk_to(&self, peer: Peer) -> bool {
        self.settings.desk != Desk::Private && (self.settings.tls.is_some() || self.limits.is_near(peer))
    }

    /// Where links to sign in to the desk are mailed.
    pub(crate) fn desk_email(&self) -> Option<&Mailbox> {
        self.settings.mail.as_ref()?.desk_email.as_ref()
    }

    /// Whether those whom the desk is open to also find its pages there.
    pub(crate) fn has_public_pages_of_desk(&self) -> bool {
        self.settings.desk == Desk::Public
    }

    /// Whether a `Host` header names a further host of the site.
    pub(crate) fn is_further_host(&self, host: &str) -> bool {
        self.also_hosts.iter().any(|further| further.is_host_of(host))
    }

    pub(crate) fn built(&self) -> Arc<BuiltSite> {
        Arc::clone(&self.built.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn allows_origin(&self, origin: &str) -> bool {
        origin == self.base_url.as_str() || self.allowed_origins.iter().any(|allowed| allowed == origin)
    }
}

fn log_sample_texts(built: &BuiltSite) {
    if let Some(step) = actions::sample_texts_step(&built.site.sample_texts) {
        tracing::warn!("{step}");
    }
}

fn log_notes(built: &BuiltSite) {
    for note in &built.site.notes {
        tracing::warn!("{note}");
    }
}
