//! What every handler can reach: the service behind the actions, and what has been made of the site.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::mcp::ServerInfo;
use super::metrics::Metrics;
use super::pages::Served;
use super::unsubscribe::Farewell;
use super::{reference, routes};
use crate::actions::{Catalogue, NewestImage, Service};
use crate::config::Settings;
use crate::domain::base_url::BaseUrl;
use crate::domain::release::Releases;
use crate::site::{Content, Site, SiteFailure};

/// Cheap to copy.
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

/// What is made of the site's files: once, and again when they change.
#[derive(Debug)]
pub(crate) struct BuiltSite {
    pub site: Site,
    pub server_info: ServerInfo,
    pub served: HashMap<String, Served>,
    pub not_found: Served,
    pub farewell: Farewell,
}

impl App {
    /// Makes every page and file.
    ///
    /// # Errors
    /// When the site's files do not fit.
    pub fn new(
        settings: &Settings,
        base_url: BaseUrl,
        service: Service,
        content: &Content,
    ) -> Result<Self, SiteFailure> {
        let releases = service.catalogue.cached();
        let made = BuiltSite::new(content, &base_url, &service.newest_image, &releases, settings.ai_train)?;
        Ok(Self(Arc::new(Inner {
            service,
            base_url,
            allowed_origins: settings.allowed_origins.clone(),
            ai_train: settings.ai_train,
            built: RwLock::new(Arc::new(made)),
            metrics: Metrics::new(),
        })))
    }

    /// Makes every page and file anew; what is there stays if that fails.
    ///
    /// # Errors
    /// When the site's files do not fit.
    pub fn remake(&self, content: &Content) -> Result<(), SiteFailure> {
        let Inner { service, base_url, ai_train, .. } = &*self.0;
        let made = BuiltSite::new(content, base_url, &service.newest_image, &service.catalogue.cached(), *ai_train)?;
        *self.0.built.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(made);
        Ok(())
    }

    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.0.service.catalogue
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

/// Makes every page and file as [`App::new`] would, to see whether it can be done; says how many.
///
/// # Errors
/// When the site's files do not fit.
pub fn try_making(
    content: &Content,
    base_url: &BaseUrl,
    newest_image: &NewestImage,
    releases: &Releases,
) -> Result<usize, SiteFailure> {
    Ok(BuiltSite::new(content, base_url, newest_image, releases, false)?.served.len())
}

impl BuiltSite {
    fn new(
        content: &Content,
        base_url: &BaseUrl,
        newest_image: &NewestImage,
        releases: &Releases,
        ai_train: bool,
    ) -> Result<Self, SiteFailure> {
        let site = Site::build(content, base_url, &reference::reference(base_url, newest_image, releases))?;
        let server_info = ServerInfo::new(&site, base_url);
        Ok(Self {
            served: routes::served(&site, base_url, &server_info, ai_train, newest_image, releases),
            not_found: Served::not_found(&site.not_found),
            farewell: Farewell::new(&site),
            server_info,
            site,
        })
    }
}
