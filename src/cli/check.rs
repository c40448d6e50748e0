//! `porchlight check`: looks at everything the service depends on, and changes nothing.

mod finding;
mod mail;
mod site;
mod storage;

use self::finding::{Finding, State, described, line};
use self::mail::about_mail;
use self::site::{about_release, about_site};
use self::storage::{about_database, about_disks};
use super::{CommandFailure, at_work, base_url, say};
use crate::config::{InvalidSettings, Settings};
use crate::domain::release::Releases;

/// Something does not work.
#[derive(Debug, thiserror::Error)]
pub(super) enum CheckFailure {
    #[error("One thing has to be put right.")]
    One,
    #[error("{0} things have to be put right.")]
    Several(usize),
}

pub(super) fn run(settings: Result<Settings, InvalidSettings>, as_json: bool) -> Result<(), CommandFailure> {
    at_work(async {
        let findings = match settings {
            Ok(settings) => look(&settings).await,
            Err(failure) => vec![Finding::trouble("settings", failure.to_string())],
        };
        if as_json {
            say(&format!("{:#}", described(&findings)));
        } else {
            for finding in &findings {
                say(&line(finding));
            }
        }
        match findings.iter().filter(|finding| finding.state == State::Trouble).count() {
            0 => Ok(()),
            1 => Err(CheckFailure::One.into()),
            count => Err(CheckFailure::Several(count).into()),
        }
    })
}

async fn look(settings: &Settings) -> Vec<Finding> {
    let mut findings = vec![about_settings(settings)];
    let (finding, store) = about_database(settings).await;
    findings.push(finding);
    findings.extend(about_disks(settings));
    let releases = match &store {
        Some(store) => store.releases().await.unwrap_or_default(),
        None => Releases::default(),
    };
    match about_site(settings, &releases) {
        Ok((finding, newest_image)) => {
            findings.push(finding);
            findings.push(about_release(settings, store, &newest_image).await);
        }
        Err(failure) => findings.push(Finding::trouble("site", failure.to_string())),
    }
    findings.extend(about_mail(settings).await);
    findings
}

fn about_settings(settings: &Settings) -> Finding {
    let base_url = base_url(settings);
    if base_url.is_loopback() {
        let words = format!("{base_url} is a local preview. Set `base_url` to the public address to go live.");
        return Finding::note("settings", words);
    }
    if !base_url.is_https() {
        let words =
            format!("{base_url} is not encrypted. Put a proxy that speaks https in front, and set `base_url` to it.");
        return Finding::note("settings", words);
    }
    Finding::good("settings", base_url.to_string())
}
