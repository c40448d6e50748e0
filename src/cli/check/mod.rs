//! `porchlight check`: checks everything that the service depends on, without changing anything.

mod finding;
mod mail;
mod site;
mod storage;

use clap::Args;
use serde_json::json;

use super::failure::Failure;
use super::run::block_on;
use super::terminal::print_record;
use crate::actions::{DiskSpace, ImageStore, address_step, setup_steps};
use crate::clock::Clock;
use crate::config::{InvalidSettings, Settings};
use crate::domain::network::BaseUrl;
use crate::domain::releases::Releases;
use crate::domain::text::quantity;
use crate::probe::NameServers;
use crate::site::Site;
use finding::{Finding, Findings, State, failed, note, ok};
use mail::check_mail;
use site::{check_certificate, check_https, check_release, check_site};
pub(super) use storage::opt_in_sentences;
use storage::{check_backup, check_bucket, check_database, check_desk, check_disk, check_opt_ins, check_waitlist};

pub(super) const EXAMPLES: &str = "\
Examples:
  porchlight check --config /etc/porchlight.toml
  porchlight check --name-server 9.9.9.9";

#[derive(Args, Debug)]
pub(super) struct CheckArguments {
    /// Name server to query for the domain of `mail_from` [default: those in /etc/resolv.conf]
    #[arg(long, value_name = "IP[:PORT]", value_parser = NameServers::parse)]
    name_server: Option<NameServers>,

    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: CheckArguments, settings: Result<Settings, InvalidSettings>) -> Result<(), Failure> {
    let name_servers = arguments.name_server.unwrap_or_else(NameServers::from_system);
    block_on(async {
        let mut findings = Findings::default();
        let next_step = match settings {
            Ok(settings) => run_checks(&settings, &name_servers, &mut findings).await,
            Err(invalid) => {
                findings.add("settings", failed(invalid));
                None
            }
        };
        let failures = findings.0.iter().filter(|finding| finding.state == State::Failed).count();
        let next = next_step.iter().map(|step| format!("Next: {step}"));
        let text: Vec<_> = findings.lines().chain(next).collect();
        let report = json!({ "ok": failures == 0, "checks": findings, "next": next_step });
        print_record(arguments.json, &report, &text.join("\n"));
        match failures {
            0 => Ok(()),
            failed => Err(Failure::new(format!("{}.", quantity(failed as u64, "check failed", "checks failed")))),
        }
    })
}

/// Returns what to do next to complete the setup.
async fn run_checks(settings: &Settings, name_servers: &NameServers, findings: &mut Findings) -> Option<String> {
    let (mut next_step, base_url, now) = (None, settings.public_url(), Clock::System.now());
    findings.add("settings", check_settings(&base_url));
    for (name, warnings) in [
        ("environment", &settings.unknown_variables),
        ("secrets", &settings.exposed_secrets),
        ("folders", &settings.writable_folders()),
    ] {
        findings.add(name, (!warnings.is_empty()).then(|| note(warnings.join(" "))));
    }
    let (database, store) = check_database(settings).await.unwrap_or_else(|finding| (finding, None));
    findings.add("database", database);
    let disks = DiskSpace::of(&settings.data_dir, settings.images.folder());
    for (name, disk) in ["disk", "images"].into_iter().zip(disks) {
        findings.add(name, check_disk(&disk));
    }
    let images = ImageStore::open(&settings.images, Clock::System);
    findings.add("images", check_bucket(&images).await);
    let releases = match &store {
        Some(store) => store.releases().await.unwrap_or_default(),
        None => Releases::default(),
    };
    let letters = match &store {
        Some(store) if settings.letters_archive => store.archived_letters().await.unwrap_or_default(),
        _ => Vec::new(),
    };
    let mut has_waitlist = true;
    match check_site(settings, &base_url, &releases, &letters, findings) {
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
            let release = check_release(&images, store.as_ref(), &newest_image).await;
            findings.add("release", release.unwrap_or_else(|failed| failed));
        }
        Err(failure) => findings.add("site", failed(failure)),
    }
    findings.add("certificate", check_certificate(settings, store.as_ref(), now).await);
    if let Some(store) = store {
        findings.add("opt-ins", check_opt_ins(settings, &store).await);
        findings.add("waitlist", check_waitlist(has_waitlist, &store).await);
        findings.add("backup", check_backup(&store, now).await);
        findings.add("desk", check_desk(settings, &base_url, &store).await);
        store.close().await;
    }
    let (https, mail) = tokio::join!(check_https(&base_url, now), check_mail(settings, name_servers));
    findings.add("https", https);
    for (name, finding) in mail {
        findings.add(name, finding);
    }
    next_step
}

fn check_settings(base_url: &BaseUrl) -> Finding {
    match address_step(base_url) {
        Some(step) => note(format!("{base_url}. {step}")),
        None => ok(base_url),
    }
}
