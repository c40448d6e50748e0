//! `porchlight letter`

mod archive;
mod bounces;
mod copies;
mod letter_file;
mod recipients;
mod send;
mod status;

use std::path::PathBuf;

use clap::Subcommand;

use super::failure::Failure;
use super::run::{Access, block_on, with_store};
use crate::config::Settings;
use crate::domain::letters::LetterReference;
use crate::domain::mail::EmailAddress;
use archive::archive;
use copies::{preview, test};
use recipients::RecipientsArguments;
use send::{SendArguments, send};
use status::{list, status};

pub(super) use bounces::{BounceArguments, EXAMPLES as BOUNCE_EXAMPLES, run as run_bounce};

#[derive(Debug, Subcommand)]
pub(super) enum LetterCommand {
    /// Write a preview of the letter next to the file; nothing is sent
    ///
    /// november.md becomes november.preview.html and november.preview.txt, as readers see it, and november.preview.eml, the
    /// complete mail with all headers, which mail programs open. No other file is written.
    #[command(before_help = "Example:\n  porchlight letter preview november.md")]
    Preview {
        /// Markdown file with the letter
        file: PathBuf,
    },
    /// Send a test copy to one address; nothing is recorded
    #[command(before_help = "Example:\n  porchlight letter test november.md --to me@troupe.example")]
    Test {
        /// Markdown file with the letter
        file: PathBuf,
        /// Address that gets the copy
        #[arg(long, value_name = "ADDRESS", value_parser = EmailAddress::parse)]
        to: EmailAddress,
    },
    /// Send the letter to everybody who opted in, at most one a month to each
    ///
    /// The letter and its images are stored in the database, and sent from there. You can interrupt it at any time: the same
    /// command with the same file, or without one, continues where it stopped, on any machine.
    #[command(before_help = "Examples:\n  porchlight letter send november.md\n  porchlight letter send --go-on")]
    Send(SendArguments),
    /// Show how many copies of a letter were sent
    #[command(before_help = "Examples:\n  porchlight letter status --json\n  porchlight letter status 9f86d081")]
    Status {
        /// Id of the letter, or its beginning, as `letter list` shows it, or its Markdown file [default: the latest letter]
        letter: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the recipients of a letter, by address
    #[command(before_help = "Examples:\n  porchlight letter recipients 9f86d081 --state refused\n  \
        porchlight letter recipients 9f86d081 --csv > november.csv")]
    Recipients(RecipientsArguments),
    /// Let a letter that was sent be read on the site, or take it out
    ///
    /// With the setting `letters_archive`, that is so for each letter whose sending begins. This is for the others.
    #[command(
        before_help = "Examples:\n  porchlight letter archive 9f86d081\n  porchlight letter archive 9f86d081 --remove"
    )]
    Archive {
        /// Id of the letter, or its beginning, as `letter list` shows it
        #[arg(value_parser = LetterReference::parse)]
        letter: LetterReference,
        /// Take it out
        #[arg(long)]
        remove: bool,
    },
    /// List all letters, latest first
    #[command(before_help = "Example:\n  porchlight letter list")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(super) fn run(command: LetterCommand, settings: &Settings) -> Result<(), Failure> {
    match command {
        LetterCommand::Preview { file } => preview(settings, &file),
        LetterCommand::Test { file, to } => block_on(test(settings, &file, &to)),
        LetterCommand::Send(arguments) => block_on(send(settings, arguments)),
        LetterCommand::Status { letter, json } => status(settings, letter.as_deref(), json),
        LetterCommand::Recipients(arguments) => {
            with_store(settings, Access::Read, async |store| arguments.run(store).await)
        }
        LetterCommand::Archive { letter, remove } => {
            with_store(settings, Access::Write, async |store| archive(settings, store, &letter, remove).await)
        }
        LetterCommand::List { json } => list(settings, json),
    }
}
