//! `porchlight check`

use clap::Args;
use serde_json::json;

use super::failure::Failure;
use super::run::block_on;
use super::terminal::{print_record, sanitize_line};
use crate::clock::Clock;
use crate::config::{InvalidSettings, Settings};
use crate::domain::text::quantity;
use crate::probe::NameServers;
use crate::web::checks::{Finding, Report, State, run_checks};

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
        let report = match settings {
            Ok(settings) => run_checks(&settings, &name_servers, &Clock::System, None).await,
            Err(invalid) => Report::of_invalid_settings(invalid),
        };
        let failures = report.failures();
        let next = report.next_step.iter().map(|step| format!("Next: {step}"));
        let text: Vec<_> = report.findings.iter().map(line).chain(next).collect();
        let json = json!({ "ok": failures == 0, "checks": report.findings, "next": report.next_step });
        print_record(arguments.json, &json, &text.join("\n"));
        match failures {
            0 => Ok(()),
            failed => Err(Failure::new(format!("{}.", quantity(failed, "check failed", "checks failed")))),
        }
    })
}

fn line(Finding { name, state, detail }: &Finding) -> String {
    let mark = match state {
        State::Ok => '✓',
        State::Note => '·',
        State::Failed => '✗',
    };
    format!("{mark} {name:<9} {}", sanitize_line(detail))
}
