//! `porchlight token`

use clap::Subcommand;
use serde_json::json;

use super::activity::record;
use super::failure::{Failure, OrFail};
use super::run::{Access, with_store};
use super::terminal::{ListPrinter, eprint_line, format_row, print_line, terminal_width};
use crate::actions::create_token;
use crate::clock::Clock;
use crate::config::Settings;
use crate::domain::desk::Change;
use crate::domain::time::{Day, Timestamp};
use crate::domain::tokens::{CredentialName, Token, TokenRight};

#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    /// Create a token and print it, this once
    #[command(before_help = "Example:\n  porchlight token create github-actions --may publish --until 2027-11-15")]
    Create {
        /// What you call it: letters, digits, `-`, `_` and `.`
        #[arg(value_parser = CredentialName::parse)]
        name: CredentialName,
        /// What it allows: publish (releases, over HTTP)
        #[arg(long, value_name = "RIGHT", value_parser = right)]
        may: TokenRight,
        /// Last day on which it works, in UTC [default: until it is revoked]
        #[arg(long, value_name = "DATE", value_parser = Day::parse)]
        until: Option<Day>,
    },
    /// List all tokens: what they may do, since when, until when, and their last use
    #[command(before_help = "Example:\n  porchlight token list --json")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// End a token; it stops working at once
    #[command(before_help = "Example:\n  porchlight token revoke github-actions")]
    Revoke {
        /// Its name
        #[arg(value_parser = CredentialName::parse)]
        name: CredentialName,
    },
}

fn right(text: &str) -> Result<TokenRight, &'static str> {
    TokenRight::parse(text).ok_or("a token may only `publish`")
}

pub(super) fn run(command: TokenCommand, settings: &Settings) -> Result<(), Failure> {
    let access = match command {
        TokenCommand::Create { .. } => Access::Create,
        TokenCommand::List { .. } => Access::Read,
        TokenCommand::Revoke { .. } => Access::Write,
    };
    with_store(settings, access, async |store| match command {
        TokenCommand::Create { name, may, until } => {
            let now = Clock::System.now();
            if let Some(day) = until.filter(|day| Day::of(now) > *day) {
                return Err(Failure::new(format!("No token was created: {} has passed.", day.date())));
            }
            let created = create_token(store, name.clone(), may, until, now).await;
            let secret = created.or_fail(|failure| format!("No token was created: {failure}."))?;
            let secret = secret.ok_or_else(|| {
                Failure::new(format!(
                    "There is a token {name} already. Choose another name, or revoke it: `porchlight token revoke {name}`."
                ))
            })?;
            record(store, Change::CreatedToken(name)).await;
            print_line(&secret.expose());
            eprint_line(&format!(
                "Whoever has this token may {may}. It is shown this once: keep it where secrets are kept."
            ));
            Ok(())
        }
        TokenCommand::List { json } => {
            list(&store.tokens().await?, json);
            Ok(())
        }
        TokenCommand::Revoke { name } => {
            if !store.delete_token(&name).await? {
                return Err(Failure::new(format!(
                    "There is no token {name}. `porchlight token list` lists all tokens."
                )));
            }
            record(store, Change::RevokedToken(name.clone())).await;
            eprint_line(&format!("The token {name} no longer works."));
            Ok(())
        }
    })
}

fn list(tokens: &[Token], as_json: bool) {
    let mut list = ListPrinter::new(as_json, None);
    for Token { name, may, created, until, last_used } in tokens {
        let until = until.map(Day::date);
        let json = json!({
            "name": name.as_str(),
            "may": may.as_str(),
            "created": created.rfc3339(),
            "last_used": last_used.map(Timestamp::rfc3339),
            "until": until,
        });
        let used = last_used.map_or_else(|| "never used".to_owned(), |at| format!("used {}", at.date()));
        let until = until.map(|day| format!("until {day}")).unwrap_or_default();
        let cells = [(may.to_string(), 8), (format!("since {}", created.date()), 16), (used, 15), (until, 16)];
        list.push(&json, &format_row(&cells, name.as_str(), terminal_width()));
    }
    list.finish("There are no tokens. `porchlight token create --help` shows how to make one.");
}
