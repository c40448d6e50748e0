//! `porchlight desk`

use clap::Args;

use super::activity::record;
use super::failure::{Failure, OrFail};
use super::run::{Access, with_store};
use super::terminal::{eprint_line, print_line};
use crate::actions::create_sign_in_link;
use crate::clock::Clock;
use crate::config::{Desk, Settings, loopback_address};
use crate::domain::desk::Change;
use crate::domain::tokens::CredentialName;

pub(super) const EXAMPLES: &str = "\
Examples:
  porchlight desk
  porchlight desk --name ada
  porchlight desk --end-all";

#[derive(Args, Debug)]
pub(super) struct DeskArguments {
    /// What the session is called, where the desk says who did something
    #[arg(long, default_value = "maker", value_parser = CredentialName::parse)]
    name: CredentialName,
    /// End all sessions and all links instead
    #[arg(long, conflicts_with = "name")]
    end_all: bool,
}

pub(super) fn run(arguments: &DeskArguments, settings: &Settings) -> Result<(), Failure> {
    if arguments.end_all {
        return with_store(settings, Access::Write, async |store| {
            store.delete_all_sessions().await.or_fail(|failure| format!("Nothing was ended: {failure}."))?;
            record(store, Change::EndedAllSessions).await;
            eprint_line(
                "All sessions are ended, and no link works that was not used. `porchlight desk` prints a new one.",
            );
            Ok(())
        });
    }
    let Some(url) = settings.desk.url(&settings.public_url(), settings.ops.address()) else {
        return Err(Failure::new(
            "No browser reaches the desk: `ops_listen` is off, or no address of this machine alone. Set it to \
             127.0.0.1:8081, or `desk` to public.",
        ));
    };
    with_store(settings, Access::Create, async |store| {
        let link = create_sign_in_link(store, &arguments.name, Clock::System.now()).await;
        let link = link.or_fail(|failure| format!("No link was made: {failure}."))?;
        record(store, Change::MadeSignInLink(arguments.name.clone())).await;
        print_line(&format!("{url}/sign-in/{}", link.expose()));
        let tunnel = match (settings.desk, settings.ops.address().and_then(loopback_address)) {
            (Desk::Private | Desk::Api, Some(address)) => format!(
                " From another machine, open a tunnel first: `ssh -L {port}:{address} HOST`.",
                port = address.port()
            ),
            _ => String::new(),
        };
        eprint_line(&format!("This link signs you in once, within ten minutes.{tunnel}"));
        Ok(())
    })
}
