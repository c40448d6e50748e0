//! `porchlight check`: looks at everything the service depends on, and changes nothing.

mod finding;
mod https;
mod mail;
mod sender;
mod site;
mod storage;

use std::time::Duration;

use clap::Args;

use self::finding::{Finding, State, described, line};
use self::https::about_https;
use self::mail::about_mail;
use self::site::{about_release, about_site};
use self::storage::{about_database, about_disks};
use super::{CommandFailure, base_url, block_on, print_line};
use crate::clock::Clock;
use crate::config::{InvalidSettings, Settings};
use crate::domain::release::Releases;
use crate::probe::NameServers;

pub(super) const EXAMPLES: &str = "\
Examples:
  porchlight check --config /etc/porchlight.toml
  porchlight check --name-server 9.9.9.9";

/// Whoever waits at a terminal for a name server or a site waits no longer.
const WORLD_WITHIN: Duration = Duration::from_secs(5);

#[derive(Args, Debug)]
pub(super) struct CheckArguments {
    /// Whom to ask about the domain of `mail_from` [default: those in /etc/resolv.conf]
    #[arg(long, value_name = "IP[:PORT]", value_parser = NameServers::parse)]
    name_server: Option<NameServers>,

    /// As JSON, for programs
    #[arg(long)]
    json: bool,
}

/// Something does not work.
#[derive(Debug, thiserror::Error)]
pub(super) enum CheckFailure {
    #[error("One thing has to be put right.")]
    One,
    #[error("{0} things have to be put right.")]
    Several(usize),
}

pub(super) fn run(
    arguments: CheckArguments,
    settings: Result<Settings, InvalidSettings>,
) -> Result<(), CommandFailure> {
    let name_servers = arguments.name_server.unwrap_or_else(NameServers::of_this_machine);
    block_on(async {
        let findings = match settings {
            Ok(settings) => look(&settings, &name_servers).await,
            Err(failure) => vec![Finding::trouble("settings", failure.to_string())],
        };
        if arguments.json {
            print_line(&format!("{:#}", described(&findings)));
        } else {
            for finding in &findings {
                print_line(&line(finding));
            }
        }
        match findings.iter().filter(|finding| finding.state == State::Trouble).count() {
            0 => Ok(()),
            1 => Err(CheckFailure::One.into()),
            count => Err(CheckFailure::Several(count).into()),
        }
    })
}

async fn look(settings: &Settings, name_servers: &NameServers) -> Vec<Finding> {
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
            findings.push(about_release(settings, store.clone(), &newest_image).await);
        }
        Err(failure) => findings.push(Finding::trouble("site", failure.to_string())),
    }
    if let Some(store) = store {
        store.close().await;
    }
    let base_url = base_url(settings);
    let (https, mail) = tokio::join!(about_https(&base_url, Clock::System.now()), about_mail(settings, name_servers));
    findings.extend(https);
    findings.extend(mail);
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
