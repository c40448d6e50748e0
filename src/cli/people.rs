//! `porchlight people`

mod cells;
mod file;
mod list;
mod private_file;
pub(super) mod show;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::Subcommand;

use self::file::BadRow;
use self::list::{PAGE, Pages, list};
use super::terminal::when_interrupted;
use super::{Access, CommandFailure, at_work, confirm, open_store, say, say_json, tell};
use crate::actions::{Failure, erase_person, suppress, unsuppress};
use crate::clock::Clock;
use crate::config::Settings;
use crate::domain::email::EmailAddress;
use crate::domain::plural::{pluralize, quantity};
use crate::domain::suppression::SuppressionReason;
use crate::store::{PersonRecord, ScrubOutcome, Store};

#[derive(Debug, Subcommand)]
pub(super) enum PeopleCommand {
    /// Show everything held of a person: the answer to a data request
    #[command(before_help = "Example:\n  porchlight people show ada@example.com --json")]
    Show {
        /// Whose address
        #[arg(value_parser = address)]
        email: EmailAddress,
        /// As JSON, for programs and for the person
        #[arg(long)]
        json: bool,
    },
    /// List everybody who downloaded the app or joined the list
    #[command(before_help = "Example:\n  porchlight people list --updates")]
    List {
        /// As JSON, for programs
        #[arg(long)]
        json: bool,
        /// So many at most
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
        /// Only those to whom the monthly email would go
        #[arg(long)]
        updates: bool,
    },
    /// Write everybody to a CSV file, or to standard output
    #[command(before_help = "Example:\n  porchlight people export people.csv")]
    Export {
        /// Where to; standard output if left out
        file: Option<PathBuf>,
    },
    /// Add people from a CSV file; who is there already stays as they are
    ///
    /// The first line names the columns. Only `email` is needed; nobody gets the monthly email unless a
    /// column `updates` says so.
    #[command(before_help = "Example:\n  porchlight people import people.csv --all-or-nothing")]
    Import {
        /// The CSV file, in UTF-8
        file: PathBuf,
        /// Take nobody if any row is bad
        #[arg(long)]
        all_or_nothing: bool,
    },
    /// Remove everything held of a person
    ///
    /// Only hashes are kept: that the address is never to be mailed, and that it had this month's letter.
    #[command(before_help = "Example:\n  porchlight people erase ada@example.com")]
    Erase {
        /// Whose address
        #[arg(value_parser = address)]
        email: EmailAddress,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Never mail an address, known or not, whoever opts in
    #[command(before_help = "Example:\n  porchlight people suppress ada@example.com")]
    Suppress {
        /// Whose address
        #[arg(value_parser = address)]
        email: EmailAddress,
    },
    /// Let a suppressed address be mailed again, if its owner opted in
    #[command(before_help = "Example:\n  porchlight people unsuppress ada@example.com")]
    Unsuppress {
        /// Whose address
        #[arg(value_parser = address)]
        email: EmailAddress,
    },
}

fn address(text: &str) -> Result<EmailAddress, String> {
    EmailAddress::parse(text).map_err(|why| why.to_string())
}

/// What a command about people could not do, in one sentence.
#[derive(Debug, thiserror::Error)]
pub(super) enum PeopleFailure {
    #[error("Nothing is held of {0}.")]
    NothingHeld(String),
    #[error("Nothing is held of {0}, except, as a hash, that a letter went there this month.")]
    MonthAlone(String),
    #[error("{0} is not suppressed.")]
    NotSuppressed(String),
    #[error("Nothing was changed: {0}.")]
    Action(#[from] Failure),
    #[error("The list ends here: {0}.")]
    Read(Failure),
    #[error("The people cannot be written to {0}: {1}.")]
    Export(String, std::io::Error),
    #[error("{0} cannot be read: {1}.")]
    File(String, String),
    #[error("{} bad, so nobody was imported. Mend the file and run the command again.", rows(*.0, *.1, ("is", "are")))]
    NoneTaken(usize, usize),
    #[error(
        "{} left out. Mend the file and run the command again: who is there by now stays.",
        rows(*.0, *.1, ("was", "were"))
    )]
    SomeLeftOut(usize, usize),
    #[error("The import stopped after {0} people: {1}. Run the command again: who is there by now stays.")]
    Stopped(u64, Failure),
}

impl PeopleCommand {
    const fn access(&self) -> Access {
        match self {
            Self::Show { .. } | Self::List { .. } | Self::Export { .. } => Access::Read,
            Self::Erase { .. } | Self::Unsuppress { .. } => Access::Amend,
            Self::Import { .. } | Self::Suppress { .. } => Access::Begin,
        }
    }
}

fn rows(some: usize, all: usize, (one, many): (&str, &str)) -> String {
    format!("{some} of {all} rows {}", pluralize(some as u64, one, many))
}

pub(super) fn run(command: PeopleCommand, settings: &Settings) -> Result<(), CommandFailure> {
    at_work(async {
        let store = open_store(settings, command.access()).await?;
        let done = match command {
            PeopleCommand::Show { email, json } => show(settings, &store, &email, json).await,
            PeopleCommand::List { json, limit, updates } => {
                list(&store, json, limit.unwrap_or(usize::MAX), updates).await
            }
            PeopleCommand::Export { file } => export(&store, file.as_deref()).await,
            PeopleCommand::Import { file, all_or_nothing } => import(&store, &file, all_or_nothing).await,
            PeopleCommand::Erase { email, yes } => erase(&store, &email, yes).await,
            PeopleCommand::Suppress { email } => never_mail(&store, &email).await,
            PeopleCommand::Unsuppress { email } => may_mail(&store, &email).await,
        };
        store.close().await;
        done
    })
}

async fn show(settings: &Settings, store: &Store, email: &EmailAddress, as_json: bool) -> Result<(), CommandFailure> {
    let record = find_person(store, email).await?;
    if as_json {
        say_json(&show::described(&record, &super::base_url(settings)));
    } else {
        say(&show::lines(&record, &super::base_url(settings)).join("\n"));
    }
    Ok(())
}

/// All that is held, if that is anything. What only a hash of this month's letter tells is of no use
/// to anybody, and goes by itself.
async fn find_person(store: &Store, email: &EmailAddress) -> Result<PersonRecord, CommandFailure> {
    let record = store.person_record(email).await?;
    let known = record.first_seen.is_some() || !record.messages.is_empty() || record.suppression.is_some();
    let typed = || email.as_typed().to_owned();
    match (known, record.months.is_empty()) {
        (true, _) => Ok(record),
        (false, false) => Err(PeopleFailure::MonthAlone(typed()).into()),
        (false, true) => Err(PeopleFailure::NothingHeld(typed()).into()),
    }
}

async fn export(store: &Store, path: Option<&Path>) -> Result<(), CommandFailure> {
    match file::export(store, path).await {
        // Who stopped reading has seen enough.
        Err(CommandFailure::People(PeopleFailure::Export(_, why)))
            if path.is_none() && why.kind() == ErrorKind::BrokenPipe =>
        {
            Ok(())
        }
        done => done,
    }
}

async fn import(store: &Store, path: &Path, all_or_nothing: bool) -> Result<(), CommandFailure> {
    when_interrupted(if all_or_nothing {
        "Stopped: nobody was imported."
    } else {
        "Stopped half way. Run the command again: who is there by now stays."
    })?;
    let now = Clock::System.now();
    let imported =
        if all_or_nothing { file::import_all(store, path, now).await? } else { file::import(store, path, now).await? };
    report(&imported.bad);
    if all_or_nothing && !imported.bad.is_empty() {
        return Err(PeopleFailure::NoneTaken(imported.bad.len(), imported.good + imported.bad.len()).into());
    }
    let there = imported.good as u64 - imported.added;
    let (added, there) = (quantity(imported.added, "person was", "people were"), quantity(there, "was", "were"));
    tell(&format!("{added} added, {there} there already."));
    if imported.bad.is_empty() {
        return Ok(());
    }
    Err(PeopleFailure::SomeLeftOut(imported.bad.len(), imported.good + imported.bad.len()).into())
}

fn report(bad: &[BadRow]) {
    for row in bad {
        tell(&row.to_string());
    }
}

async fn erase(store: &Store, email: &EmailAddress, yes: bool) -> Result<(), CommandFailure> {
    let typed = email.as_typed();
    find_person(store, email).await?;
    if !confirm(&format!("Erase everything held of {typed}?"), yes)? {
        tell("Nothing was erased.");
        return Ok(());
    }
    let erased = erase_person(store, email, Clock::System.now()).await;
    let (erased, remains) = erased.map_err(PeopleFailure::from)?;
    tell(&format!(
        "{typed} is erased (downloads and joins: {}, opt-ins: {}, messages: {}, letters: {}).",
        erased.events, erased.consents, erased.messages, erased.letters
    ));
    let left = store.person_record(email).await?;
    if left.suppression.is_some() {
        tell("Kept as a hash: that the address is never to be mailed.");
    }
    if !left.months.is_empty() {
        tell("Kept as a hash: that it had this month's letter.");
    }
    match remains {
        ScrubOutcome::Clean => {}
        ScrubOutcome::LeftInWal => tell(
            "Somebody is reading the database (a backup?): the log beside it, *-wal, holds what was erased until it is \
             written over, or until the service stops.",
        ),
        ScrubOutcome::LeftInFile(why) => tell(&format!(
            "Copies may be left in unused space of the database file, which could not be cleaned: {why}. \
             `sqlite3 FILE VACUUM` does it."
        )),
    }
    tell("Backups, exported lists and mails that reached your mailbox are not touched.");
    Ok(())
}

async fn never_mail(store: &Store, email: &EmailAddress) -> Result<(), CommandFailure> {
    let done = suppress(store, email, SuppressionReason::Makers, Clock::System.now()).await;
    done.map_err(PeopleFailure::from)?;
    let typed = email.as_typed();
    tell(&format!("{typed} is never mailed again. `porchlight people unsuppress {typed}` undoes it."));
    Ok(())
}

async fn may_mail(store: &Store, email: &EmailAddress) -> Result<(), CommandFailure> {
    let typed = email.as_typed();
    if !unsuppress(store, email).await.map_err(PeopleFailure::from)? {
        return Err(PeopleFailure::NotSuppressed(typed.to_owned()).into());
    }
    let mailed = store.person_record(email).await?.consents.iter().any(|consent| consent.stands);
    tell(&if mailed {
        format!("{typed} is suppressed no longer, and gets the monthly email: an opt-in stands.")
    } else {
        format!("{typed} is suppressed no longer. It gets no email until its owner opts in.")
    });
    Ok(())
}
