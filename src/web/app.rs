//! The state that all handlers share (axum `State`): the service behind the actions, and the built site.

use std::sync::{Arc, PoisonError, RwLock};

use super::built_site::BuiltSite;
use super::metrics::Metrics;
use crate::actions::{ReleaseCatalog, Service};
use crate::config::Settings;
use crate::domain::base_url::BaseUrl;
use crate::site::{Content, SiteFailure};

/// The shared state of all handlers. Cheap to clone.
#[derive(Clone, Debug)]
pub struct App(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    service: Service,
    base_url: BaseUrl,
    allowed_origins: Vec<String>,
    ai_train: bool,
    built: RwLock<Arc<BuiltSite>>,
    metrics: Metrics,
}

impl App {
    /// Builds every page and file.
    ///
    /// # Errors
    /// Returns an error if a file of the site is missing or invalid.
    pub fn new(
        settings: &Settings,
        base_url: BaseUrl,
        service: Service,
        content: &Content,
    ) -> Result<Self, SiteFailure> {
        let releases = service.catalog.cached();
        let built = BuiltSite::new(content, &base_url, &service.newest_image, &releases, settings.ai_train)?;
        Ok(Self(Arc::new(Inner {
            service,
            base_url,
            allowed_origins: settings.allowed_origins.clone(),
            ai_train: settings.ai_train,
            built: RwLock::new(Arc::new(built)),
            metrics: Metrics::new(),
        })))
    }

    /// Builds every page and file again. On failure the present ones stay.
    ///
    /// # Errors
    /// Returns an error if a file of the site is missing or invalid.
    pub fn rebuild(&self, content: &Content) -> Result<(), SiteFailure> {
        let Inner { service, base_url, ai_train, .. } = &*self.0;
        let built = BuiltSite::new(content, base_url, &service.newest_image, &service.catalog.cached(), *ai_train)?;
        *self.0.built.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(built);
        Ok(())
    }

    #[must_use]
    pub fn catalog(&self) -> &ReleaseCatalog {
        &self.0.service.catalog
    }

    pub(crate) fn service(&self) -> &Service {
        &self.0.service
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
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
