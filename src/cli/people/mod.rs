//! `porchlight people`

mod cells;
mod csv_file;
mod csv_row;
mod import;
mod list;
mod removal;
mod tools;

use std::path::PathBuf;

use clap::Subcommand;

use crate::actions::{find_person, person_facts, person_history, person_json, suppress_person, unsuppress_person};
use crate::cli::activity::record;
use crate::cli::failure::{Failure, OrFail};
use crate::cli::run::{Access, with_store};
use crate::cli::terminal::{eprint_line, print_record};
use crate::clock::Clock;
use crate::config::Settings;
use crate::domain::desk::Change;
use crate::domain::mail::EmailAddress;
use crate::domain::time::Timestamp;
use crate::store::Store;
pub(super) use cells::escape_formula;
pub use csv_file::{InvalidRow, Rows};
use import::{IMPORT_EXAMPLES, ImportArguments, import};
use list::{LIST_EXAMPLES, ListArguments, list};
use removal::{PURGE_EXAMPLES, PurgeArguments, erase};

#[derive(Debug, Subcommand)]
pub(super) enum PeopleCommand {
    /// Show everything stored about a person, such as for a data request
    #[command(before_help = "Example:\n  porchlight people show ada@example.com --json")]
    Show {
        /// Address of the person
        #[arg(value_parser = EmailAddress::parse)]
        email: EmailAddress,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List people, the newest first: everybody who downloaded the app or joined the waitlist
    #[command(before_help = LIST_EXAMPLES)]
    List(ListArguments),
    /// Export everybody as CSV
    #[command(before_help = "Example:\n  porchlight people export people.csv")]
    Export {
        /// File to write [default: standard output]
        file: Option<PathBuf>,
    },
    /// Import people from a CSV file, or from an export of Mailchimp, Buttondown, Ghost or listmonk
    ///
    /// Existing people are not changed. The first line names the columns, by which the exports of other tools are recognized; what
    /// is in them is said before anything is imported. In a list of your own only `email` is required, and nobody is opted in to
    /// the monthly letter unless the column `updates` is true. A row that is suppressed also suppresses an existing person.
    #[command(before_help = IMPORT_EXAMPLES)]
    Import(ImportArguments),
    /// Erase everything stored about a person
    ///
    /// Only keyed hashes are kept: that the address is suppressed, that it got this month's letter, and for 30 days that it
    /// was asked to confirm an opt-in. Unused parts of the database files may hold old bytes until they are overwritten;
    /// `--vacuum` clears them.
    #[command(
        before_help = "Examples:\n  porchlight people erase ada@example.com\n  porchlight people erase ada@example.com --vacuum"
    )]
    Erase {
        /// Address of the person
        #[arg(value_parser = EmailAddress::parse)]
        email: EmailAddress,
        /// Also rewrite the database files without unused parts; writes are refused meanwhile
        #[arg(long)]
        vacuum: bool,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Remove signups by source or time, such as invented ones, and people of whom nothing else is stored
    ///
    /// Shows how many match before it asks. Statistics and suppressions are not changed.
    #[command(before_help = PURGE_EXAMPLES)]
    Purge(PurgeArguments),
    /// Never send mail to an address, even if it opts in
    #[command(before_help = "Example:\n  porchlight people suppress ada@example.com")]
    Suppress {
        /// Address to suppress, known or not
        #[arg(value_parser = EmailAddress::parse)]
        email: EmailAddress,
    },
    /// Allow mail to a suppressed address again, if it is opted in
    #[command(before_help = "Example:\n  porchlight people unsuppress ada@example.com")]
    Unsuppress {
        /// Address of the person
        #[arg(value_parser = EmailAddress::parse)]
        email: EmailAddress,
    },
}

pub(super) fn run(command: PeopleCommand, settings: &Settings) -> Result<(), Failure> {
    if let PeopleCommand::Import(arguments) = &command
        && let Some(done) = arguments.dry_run()
    {
        return done;
    }
    let access = match command {
        PeopleCommand::Show { .. } | PeopleCommand::List(_) | PeopleCommand::Export { .. } => Access::Read,
        PeopleCommand::Erase { .. } | PeopleCommand::Purge(_) | PeopleCommand::Unsuppress { .. } => Access::Write,
        PeopleCommand::Import(_) | PeopleCommand::Suppress { .. } => Access::Create,
    };
    with_store(settings, access, async |store| match command {
        PeopleCommand::Show { email, json } => show(settings, store, &email, json).await,
        PeopleCommand::List(arguments) => list(store, arguments).await,
        PeopleCommand::Export { file } => csv_file::export(store, file.as_deref()).await,
        PeopleCommand::Import(arguments) => import(store, arguments).await,
        PeopleCommand::Erase { email, vacuum, yes } => erase(store, &email, vacuum, yes).await,
        PeopleCommand::Purge(arguments) => arguments.run(store).await,
        PeopleCommand::Suppress { email } => suppress(store, &email).await,
        PeopleCommand::Unsuppress { email } => unsuppress(store, &email).await,
    })
}

/// Prints the current state, then the history in order of time.
async fn show(settings: &Settings, store: &Store, email: &EmailAddress, as_json: bool) -> Result<(), Failure> {
    let (person, base_url) = (find_person(store, email).await?, settings.public_url());
    let facts = person_facts(&person, &base_url, Timestamp::rfc3339)
        .into_iter()
        .map(|(label, value)| format!("{label:<11}  {value}"));
    let history = person_history(&person).into_iter().map(|(at, text)| format!("{}  {text}", at.rfc3339()));
    let months = person.months.iter().map(|month| format!("{month}  letter of the month sent or attempted"));
    let lines: Vec<_> = facts.chain(history).chain(months).collect();
    print_record(as_json, &person_json(&person, &base_url), &lines.join("\n"));
    Ok(())
}

async fn suppress(store: &Store, email: &EmailAddress) -> Result<(), Failure> {
    let result = suppress_person(store, email, Clock::System.now()).await;
    result.or_fail(|failure| format!("Nothing was changed: {failure}."))?;
    record(store, Change::SuppressedPerson).await;
    let typed = email.as_typed();
    eprint_line(&format!("{typed} is suppressed. `porchlight people unsuppress {typed}` undoes this."));
    Ok(())
}

async fn unsuppress(store: &Store, email: &EmailAddress) -> Result<(), Failure> {
    let unsuppressed = unsuppress_person(store, email).await;
    let unsuppressed = unsuppressed.or_fail(|failure| format!("Nothing was changed: {failure}."))?;
    let outcome = unsuppressed.ok_or_else(|| Failure::new(format!("{} is not suppressed.", email.as_typed())))?;
    record(store, Change::UnsuppressedPerson).await;
    eprint_line(&outcome);
    Ok(())
}
