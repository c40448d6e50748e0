//! `porchlight people`

mod csv_file;
mod csv_row;
mod erase;
mod formula;
mod list;
mod private_file;
mod purge;
mod show;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::Subcommand;

pub use self::csv_file::{InvalidRow, Rows};
use self::erase::erase;
use self::list::{BATCH_SIZE, PeopleCursor, list};
use self::purge::PurgeArguments;
use super::terminal::exit_on_interrupt;
use super::{Access, CommandFailure, block_on, eprint_line, open_store, print_json, print_line};
use crate::actions::{self, Failure};
use crate::clock::Clock;
use crate::config::Settings;
use crate::domain::email::EmailAddress;
use crate::domain::plural::{plural_form, quantity};
use crate::domain::suppression::SuppressionReason;
use crate::store::{PersonRecord, Store};

#[derive(Debug, Subcommand)]
pub(super) enum PeopleCommand {
    /// Show everything stored about a person, such as for a data request
    #[command(before_help = "Example:\n  porchlight people show ada@example.com --json")]
    Show {
        /// Address of the person
        #[arg(value_parser = address)]
        email: EmailAddress,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List everybody who downloaded the app or joined the waitlist
    #[command(before_help = "Example:\n  porchlight people list --updates")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// List at most N people
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
        /// List only people who get the monthly letter
        #[arg(long)]
        updates: bool,
    },
    /// Export everybody as CSV
    #[command(before_help = "Example:\n  porchlight people export people.csv")]
    Export {
        /// File to write [default: standard output]
        file: Option<PathBuf>,
    },
    /// Import people from a CSV file; existing people are not changed
    ///
    /// The first line names the columns. Only `email` is required. Nobody is opted in to the monthly letter unless the
    /// column `updates` is true. A row with `suppressed` also suppresses an existing person.
    #[command(before_help = "Example:\n  porchlight people import people.csv --all-or-nothing")]
    Import {
        /// CSV file in UTF-8; - reads standard input
        file: PathBuf,
        /// Import nothing if any row is invalid
        #[arg(long)]
        all_or_nothing: bool,
    },
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
        #[arg(value_parser = address)]
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
    #[command(before_help = purge::EXAMPLES)]
    Purge(PurgeArguments),
    /// Never send mail to an address, even if it opts in
    #[command(before_help = "Example:\n  porchlight people suppress ada@example.com")]
    Suppress {
        /// Address to suppress, known or not
        #[arg(value_parser = address)]
        email: EmailAddress,
    },
    /// Allow mail to a suppressed address again, if it is opted in
    #[command(before_help = "Example:\n  porchlight people unsuppress ada@example.com")]
    Unsuppress {
        /// Address of the person
        #[arg(value_parser = address)]
        email: EmailAddress,
    },
}

fn address(text: &str) -> Result<EmailAddress, String> {
    EmailAddress::parse(text).map_err(|error| error.to_string())
}

/// Why a `people` command failed, in one sentence.
#[derive(Debug, thiserror::Error)]
pub enum PeopleFailure {
    #[error("Nothing is stored about {0}.")]
    Unknown(String),
    #[error("Nothing is stored about {0}, except a hash that records {1}.")]
    OnlyHash(String, &'static str),
    #[error("{0} is not suppressed.")]
    NotSuppressed(String),
    #[error("No signup matches, so nothing was removed. `porchlight stats` shows sources and days.")]
    NothingToPurge,
    #[error("Nothing was changed: {0}.")]
    Action(#[from] Failure),
    #[error("Perhaps not everything was removed: {0}. Run the same command again; it removes the rest.")]
    Incomplete(Failure),
    #[error(
        "The person was erased, but the database files were not rewritten: {0}. Run the command with `--vacuum` again later."
    )]
    NotVacuumed(crate::store::StoreFailure),
    #[error("The list is incomplete: {0}.")]
    Read(Failure),
    #[error("The list cannot be written to {0}: {1}.")]
    Export(String, std::io::Error),
    #[error("{0} cannot be read: {1}.")]
    File(String, String),
    #[error("{} invalid, so nothing was imported. Fix the file and run the command again.", rows(*.0, *.1, ("is", "are")))]
    NothingImported(usize, usize),
    #[error("{} skipped. Fix the file and run the command again. {IMPORT_AGAIN}", rows(*.0, *.1, ("was", "were")))]
    RowsSkipped(usize, usize),
    #[error("The import stopped after {0} people: {1}. Run the command again. {IMPORT_AGAIN}")]
    Stopped(u64, Failure),
}

/// What the hash of an address records that was asked to confirm an opt-in.
const ASKED: &str = "that it was asked to confirm an opt-in";

const IMPORT_AGAIN: &str = "People who were already imported are not changed.";

impl PeopleCommand {
    const fn access(&self) -> Access {
        match self {
            Self::Show { .. } | Self::List { .. } | Self::Export { .. } => Access::Read,
            Self::Erase { .. } | Self::Purge(_) | Self::Unsuppress { .. } => Access::Write,
            Self::Import { .. } | Self::Suppress { .. } => Access::Create,
        }
    }
}

fn rows(some: usize, all: usize, (one, many): (&str, &str)) -> String {
    format!("{some} of {all} rows {}", plural_form(some as u64, one, many))
}

pub(super) fn run(command: PeopleCommand, settings: &Settings) -> Result<(), CommandFailure> {
    block_on(async {
        let store = open_store(settings, command.access()).await?;
        let result = match command {
            PeopleCommand::Show { email, json } => show(settings, &store, &email, json).await,
            PeopleCommand::List { json, limit, updates } => {
                list(&store, json, limit.unwrap_or(usize::MAX), updates).await
            }
            PeopleCommand::Export { file } => export(&store, file.as_deref()).await,
            PeopleCommand::Import { file, all_or_nothing } => import(&store, &file, all_or_nothing).await,
            PeopleCommand::Erase { email, vacuum, yes } => erase(&store, &email, vacuum, yes).await,
            PeopleCommand::Purge(arguments) => arguments.run(&store).await,
            PeopleCommand::Suppress { email } => suppress(&store, &email).await,
            PeopleCommand::Unsuppress { email } => unsuppress(&store, &email).await,
        };
        store.close().await;
        result
    })
}

async fn show(settings: &Settings, store: &Store, email: &EmailAddress, as_json: bool) -> Result<(), CommandFailure> {
    let record = find_person(store, email).await?;
    if as_json {
        print_json(&show::person_json(&record, &super::base_url(settings)));
    } else {
        print_line(&show::lines(&record, &super::base_url(settings)).join("\n"));
    }
    Ok(())
}

/// Returns everything stored about a person. A hash that only records this month's letter, or that the address was asked to
/// confirm an opt-in, counts as nothing: it cannot be erased, and is deleted automatically.
async fn find_person(store: &Store, email: &EmailAddress) -> Result<PersonRecord, CommandFailure> {
    let record = store.person_record(email).await?;
    let known = record.first_seen.is_some() || !record.messages.is_empty() || record.suppression.is_some();
    let typed = || email.as_typed().to_owned();
    if known {
        return Ok(record);
    }
    let kept = match (record.months.is_empty(), record.asked_at.is_some()) {
        (true, false) => return Err(PeopleFailure::Unknown(typed()).into()),
        (false, false) => "this month's letter",
        (true, true) => ASKED,
        (false, true) => "this month's letter, and one that records that it was asked to confirm an opt-in",
    };
    Err(PeopleFailure::OnlyHash(typed(), kept).into())
}

async fn export(store: &Store, path: Option<&Path>) -> Result<(), CommandFailure> {
    match csv_file::export(store, path).await {
        // A closed pipe, as with `| head`, is not an error.
        Err(CommandFailure::People(PeopleFailure::Export(_, error)))
            if path.is_none() && error.kind() == ErrorKind::BrokenPipe =>
        {
            Ok(())
        }
        result => result,
    }
}

async fn import(store: &Store, path: &Path, all_or_nothing: bool) -> Result<(), CommandFailure> {
    exit_on_interrupt(if all_or_nothing {
        "Interrupted: nothing was imported.".to_owned()
    } else {
        format!("Interrupted. Run the command again. {IMPORT_AGAIN}")
    })?;
    let now = Clock::System.now();
    let imported = if all_or_nothing {
        csv_file::import_all(store, path, now).await?
    } else {
        csv_file::import(store, path, now).await?
    };
    for row in &imported.invalid {
        eprint_line(&row.to_string());
    }
    let (invalid, all) = (imported.invalid.len(), imported.valid + imported.invalid.len());
    if all_or_nothing && invalid > 0 {
        return Err(PeopleFailure::NothingImported(invalid, all).into());
    }
    let existing = imported.valid as u64 - imported.added;
    let added = quantity(imported.added, "person was", "people were");
    eprint_line(&format!("{added} added, {existing} already existed."));
    if invalid > 0 {
        return Err(PeopleFailure::RowsSkipped(invalid, all).into());
    }
    Ok(())
}

async fn suppress(store: &Store, email: &EmailAddress) -> Result<(), CommandFailure> {
    let result = actions::suppress(store, email, SuppressionReason::Makers, Clock::System.now()).await;
    result.map_err(PeopleFailure::from)?;
    let typed = email.as_typed();
    eprint_line(&format!("{typed} is suppressed. `porchlight people unsuppress {typed}` undoes this."));
    Ok(())
}

async fn unsuppress(store: &Store, email: &EmailAddress) -> Result<(), CommandFailure> {
    let typed = email.as_typed();
    if !actions::unsuppress(store, email).await.map_err(PeopleFailure::from)? {
        return Err(PeopleFailure::NotSuppressed(typed.to_owned()).into());
    }
    let opted_in = store.person_record(email).await?.consents.iter().any(|consent| consent.is_current);
    eprint_line(&if opted_in {
        format!("{typed} is no longer suppressed. It is opted in, so it gets the monthly letter.")
    } else {
        format!("{typed} is no longer suppressed. It gets no letter until its owner opts in.")
    });
    Ok(())
}
