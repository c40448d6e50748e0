//! Checks everything that the service depends on, without changing anything: for `porchlight check`, and for the desk of the
//! running service.
//!
//! What is found is told in words. Knows neither the terminal nor a page.

mod finding;
mod mail;
mod site;
mod storage;

use crate::actions::{DiskSpace, ImageStore, address_step, setup_steps};
use crate::blocking::blocking;
use crate::clock::Clock;
use crate::config::{InvalidSettings, Settings};
use crate::domain::network::BaseUrl;
use crate::domain::releases::Releases;
use crate::probe::NameServers;
use crate::site::Site;
use crate::store::Store;
pub use finding::{Finding, State};
use finding::{Findings, failed, note, ok};
use mail::check_mail;
use site::{check_certificate, check_https, check_release, check_site};
use storage::{
    check_backup, check_bucket, check_database, check_desk, check_disk, check_opt_ins, check_waitlist, open_database,
};

/// What all checks found, in their order.
#[derive(Clone, Debug)]
pub struct Report {
    pub findings: Vec<Finding>,
    /// What to do next to complete the setup.
    pub next_step: Option<String>,
}

impl Report {
    /// Without valid settings nothing else can be checked.
    pub fn of_invalid_settings(invalid: InvalidSettings) -> Self {
        Self { findings: vec![Finding { name: "settings", ..failed(invalid) }], next_step: None }
    }

    /// How many checks failed.
    pub fn failures(&self) -> u64 {
        self.findings.iter().filter(|finding| finding.state == State::Failed).count() as u64
    }
}

/// Runs all checks. `running` is the database of the service that runs them; a command has none, and one is opened for it.
/// Takes up to half a minute if a server does not respond.
pub async fn run_checks(
    settings: &Settings,
    name_servers: &NameServers,
    clock: &Clock,
    running: Option<&Store>,
) -> Report {
    let (mut findings, mut next_step, base_url, now) = (Findings::default(), None, settings.public_url(), clock.now());
    findings.add("settings", check_settings(&base_url));
    for (name, warnings) in [
        ("environment", &settings.unknown_variables),
        ("secrets", &settings.exposed_secrets),
        ("folders", &settings.writable_folders()),
    ] {
        findings.add(name, (!warnings.is_empty()).then(|| note(warnings.join(" "))));
    }
    let opened = running.map_or_else(|| open_database(settings), |store| Ok(store.clone()));
    let database = match &opened {
        Ok(store) => check_database(settings, store).await,
        Err(finding) => Err(finding.clone()),
    };
    let store = opened.as_ref().ok().filter(|_| database.is_ok());
    findings.add("database", database.unwrap_or_else(|failed| failed));
    let disks = DiskSpace::of(&settings.data_dir, settings.images.folder());
    for (name, disk) in ["disk", "images"].into_iter().zip(disks) {
        findings.add(name, check_disk(&disk));
    }
    let images = ImageStore::open(&settings.images, clock.clone());
    findings.add("images", check_bucket(&images).await);
    let releases = match store {
        Some(store) => store.releases().await.unwrap_or_default(),
        None => Releases::default(),
    };
    let letters = match store {
        Some(store) if settings.letters_archive => store.archived_letters().await.unwrap_or_default(),
        _ => Vec::new(),
    };
    let mut has_waitlist = true;
    match blocking(|| check_site(settings, &base_url, &releases, &letters, &mut findings)) {
        Ok((Site { facts, sample_texts, .. }, newest_image)) => {
            let steps =
                setup_steps(&facts, &sample_texts, &newest_image, &releases, &base_url, settings.mail.is_some());
            next_step = steps.into_iter().next();
            has_waitlist = facts.waitlist;
            if facts.security_txt_expires() < now {
                let day = facts.security_txt_expires().date();
                let text =
                    format!("It expired on {day}. Set `security_txt_expires` in site.toml, or update Porchlight.");
                findings.add("security.txt", note(text));
            }
            let release = check_release(&images, store, &newest_image).await;
            findings.add("release", release.unwrap_or_else(|failed| failed));
        }
        Err(failure) => findings.add("site", failed(failure)),
    }
    findings.add("certificate", check_certificate(settings, store, clock).await);
    if let Some(store) = store {
        findings.add("opt-ins", check_opt_ins(settings, store).await);
        findings.add("waitlist", check_waitlist(has_waitlist, store).await);
        findings.add("backup", check_backup(settings, store, clock).await);
        findings.add("desk", check_desk(settings, &base_url, store).await);
    }
    if let (Ok(opened), None) = (&opened, running) {
        opened.close().await;
    }
    let (https, mail) = tokio::join!(check_https(&base_url, now), check_mail(settings, name_servers));
    findings.add("https", https);
    for (name, finding) in mail {
        findings.add(name, finding);
    }
    Report { findings: findings.0, next_step }
}

fn check_settings(base_url: &BaseUrl) -> Finding {
    match address_step(base_url) {
        Some(step) => note(format!("{base_url}. {step}")),
        None => ok(base_url),
    }
}
