//! `porchlight check`: checks everything that the service depends on, without changing anything.

mod finding;
mod https;
mod mail;
mod site;
mod storage;

use std::time::Duration;

use clap::Args;

use self::finding::{Finding, State, line, report};
use self::https::{check_certificate, check_https};
use self::mail::check_mail;
use self::site::{check_images, check_release, check_site};
pub(super) use self::storage::opt_in_sentences;
use self::storage::{check_backup, check_bucket, check_database, check_disks, check_opt_ins};
use super::terminal::print_record;
use super::{Failure, base_url, block_on};
use crate::actions::{address_step, setup_steps};
use crate::clock::Clock;
use crate::config::{InvalidSettings, Settings};
use crate::domain::calendar::Day;
use crate::domain::plural::quantity;
use crate::domain::release::Releases;
use crate::probe::NameServers;

pub(super) const EXAMPLES: &str = "\
Examples:
  porchlight check --config /etc/porchlight.toml
  porchlight check --name-server 9.9.9.9
  porchlight check --deep";

/// How long the check of the site's certificate and of the sender's DNS records may take each.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Args, Debug)]
pub(super) struct CheckArguments {
    /// Name server to query for the domain of `mail_from` [default: those in /etc/resolv.conf]
    #[arg(long, value_name = "IP[:PORT]", value_parser = NameServers::parse)]
    name_server: Option<NameServers>,

    /// Also read every published disk image and compare its SHA-256
    #[arg(long)]
    deep: bool,

    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: CheckArguments, settings: Result<Settings, InvalidSettings>) -> Result<(), Failure> {
    let name_servers = arguments.name_server.unwrap_or_else(NameServers::from_system);
    block_on(async {
        let (findings, next_step) = match settings {
            Ok(settings) => run_checks(&settings, &name_servers, arguments.deep).await,
            Err(failure) => (vec![Finding::failed("settings", failure.to_string())], None),
        };
        let next = next_step.iter().map(|step| format!("Next: {step}"));
        let text: Vec<_> = findings.iter().map(line).chain(next).collect();
        print_record(arguments.json, &report(&findings, next_step.as_deref()), &text.join("\n"));
        match findings.iter().filter(|finding| finding.state == State::Failed).count() {
            0 => Ok(()),
            failed => Err(Failure::new(format!("{}.", quantity(failed as u64, "check failed", "checks failed")))),
        }
    })
}

/// Returns the findings, and what to do next to complete the setup.
async fn run_checks(settings: &Settings, name_servers: &NameServers, deep: bool) -> (Vec<Finding>, Option<String>) {
    let (mut next_step, base_url) = (None, base_url(settings));
    let mut findings = vec![check_settings(settings)];
    if !settings.exposed_secrets.is_empty() {
        findings.push(Finding::note("secrets", settings.exposed_secrets.join(" ")));
    }
    let (finding, store) = check_database(settings).await;
    findings.push(finding);
    findings.extend(check_disks(settings));
    findings.extend(check_bucket(settings).await);
    let releases = match &store {
        Some(store) => store.releases().await.unwrap_or_default(),
        None => Releases::default(),
    };
    match check_site(settings, &releases, Day::of(Clock::System.now())) {
        Ok((about_site, facts, newest_image)) => {
            let steps = setup_steps(&facts, &newest_image, &releases, &base_url, settings.mail.is_some());
            next_step = steps.into_iter().next();
            findings.extend(about_site);
            findings.push(check_release(settings, store.clone(), &newest_image).await);
        }
        Err(failure) => findings.push(Finding::failed("site", failure.to_string())),
    }
    if deep && store.is_some() {
        findings.push(check_images(settings, &releases).await);
    }
    findings.extend(check_certificate(settings, store.as_ref(), Clock::System.now()).await);
    if let Some(store) = store {
        findings.extend(check_opt_ins(settings, &store).await);
        findings.extend(check_backup(&store, Clock::System.now()).await);
        store.close().await;
    }
    let (https, mail) = tokio::join!(check_https(&base_url, Clock::System.now()), check_mail(settings, name_servers));
    findings.extend(https);
    findings.extend(mail);
    (findings, next_step)
}

fn check_settings(settings: &Settings) -> Finding {
    let base_url = base_url(settings);
    match address_step(&base_url) {
        Some(step) => Finding::note("settings", format!("{base_url}. {step}")),
        None => Finding::ok("settings", base_url.to_string()),
    }
}
