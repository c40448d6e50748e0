//! What every handler can reach: the service behind the actions, the site, and what was made of
//! them at the start.

use std::collections::HashMap;
use std::sync::Arc;

use super::mcp::Hello;
use super::pages::Served;
use super::{reference, routes};
use crate::actions::Service;
use crate::config::Settings;
use crate::domain::base_url::BaseUrl;
use crate::site::{Content, Site, SiteFailure};

/// Cheap to copy.
#[derive(Clone, Debug)]
pub struct App(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    service: Service,
    base_url: BaseUrl,
    site: Site,
    hello: Hello,
    served: HashMap<String, Served>,
    not_found: Served,
    allowed_origins: Vec<String>,
}

impl App {
    /// Makes every page and file once.
    ///
    /// # Errors
    /// When the site's files do not fit.
    pub fn new(settings: &Settings, base_url: BaseUrl, service: Service) -> Result<Self, SiteFailure> {
        let reference = reference::reference(&base_url, &service);
        let site = Site::build(Content, &base_url, &reference)?;
        let hello = Hello::new(&site.facts, &base_url, &site.icon.path);
        let served = routes::served(&site, &base_url, &hello, settings.ai_train);
        let not_found = Served::not_found(&site.not_found);
        let allowed_origins = settings.allowed_origins.clone();
        Ok(Self(Arc::new(Inner { service, base_url, site, hello, served, not_found, allowed_origins })))
    }

    pub(crate) fn service(&self) -> &Service {
        &self.0.service
    }

    pub(crate) fn base_url(&self) -> &BaseUrl {
        &self.0.base_url
    }

    pub(crate) fn site(&self) -> &Site {
        &self.0.site
    }

    pub(crate) fn hello(&self) -> &Hello {
        &self.0.hello
    }

    /// What is made once and served at this very path.
    pub(crate) fn served_at(&self, path: &str) -> Option<&Served> {
        self.0.served.get(path)
    }

    pub(crate) fn not_found(&self) -> &Served {
        &self.0.not_found
    }

    pub(crate) fn allows_origin(&self, origin: &str) -> bool {
        origin == self.0.base_url.as_str() || self.0.allowed_origins.iter().any(|allowed| allowed == origin)
    }
}
