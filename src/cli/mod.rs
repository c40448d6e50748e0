//! The command line: floor 5. One file a command.

mod backup;
mod check;
mod config;
mod help;
mod inbox;
mod letter;
mod manual;
mod move_database;
mod open_store;
mod people;
mod release;
mod serve;
mod stats;
mod terminal;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

use self::backup::BackupCommandFailure;
use self::check::{CheckArguments, CheckFailure};
use self::config::ConfigCommand;
use self::inbox::{InboxCommand, InboxFailure};
use self::letter::{LetterCommand, LetterCommandFailure};
use self::move_database::MoveFailure;
use self::open_store::{Access, OpenFailure, open_store};
use self::people::{PeopleCommand, PeopleFailure};
use self::release::{ReleaseCommand, ReleaseFailure};
use self::stats::StatsArguments;
use self::terminal::{confirm, say, say_as_is, say_json, tell};
use crate::config::{InvalidSettings, RawSettings, ResolvedSetting, Settings};
use crate::domain::base_url::BaseUrl;
use crate::serve::ServeFailure;
use crate::site::SiteFailure;
use crate::store::{Database, StoreFailure};

/// The website service of a native Mac app: pages for people and agents, downloads, contact, MCP.
#[derive(Debug, Parser)]
#[command(name = "porchlight", version, before_help = help::EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// File with settings [default: porchlight.toml in the working folder, if it is there]
    #[arg(long, global = true, env = "PORCHLIGHT_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    settings: RawSettings,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the site until told to stop
    #[command(before_help = "Example:\n  porchlight serve --base-url https://troupe.example")]
    Serve {
        /// Show changes in `site_dir` as they are made
        #[arg(long)]
        watch: bool,
    },
    /// See whether everything is set up: settings, database, disk, site, release, https, mail, sender
    #[command(before_help = check::EXAMPLES)]
    Check(CheckArguments),
    /// Show what is set and where, or every setting there is
    #[command(subcommand, before_help = "Example:\n  porchlight config show")]
    Config(ConfigCommand),
    /// Write everything to a folder, while the service goes on
    #[command(before_help = "Example:\n  porchlight backup /backups/2026-11-15")]
    Backup {
        /// The folder; it is made, and has to be empty if it is there
        folder: PathBuf,
    },
    /// Bring a backup back, into an empty database
    #[command(before_help = "Example:\n  porchlight restore /backups/2026-11-15 --data-dir /srv/porchlight")]
    Restore {
        /// What `porchlight backup` wrote
        folder: PathBuf,
    },
    /// Carry the embedded database over to PostgreSQL; it stays as it is
    #[command(before_help = "Example:\n  porchlight move --to postgres://porchlight@db.example/porchlight")]
    Move {
        /// The database, new and empty: `postgres://user@host/database`; a password is better off in `PGPASSFILE`
        #[arg(long, value_name = "URL", env = "PORCHLIGHT_MOVE_TO", hide_env_values = true)]
        to: String,
    },
    /// Publish disk images, list them, take them back
    #[command(subcommand, before_help = "Example:\n  porchlight release publish Troupe.dmg --version 1.4.0")]
    Release(ReleaseCommand),
    /// Write to those who asked for one email a month
    #[command(
        subcommand,
        before_help = "Examples:\n  porchlight letter preview november.md\n  porchlight letter send november.md"
    )]
    Letter(LetterCommand),
    /// See, list, export, import and erase people
    #[command(subcommand, before_help = "Example:\n  porchlight people show ada@example.com")]
    People(PeopleCommand),
    /// Read what people wrote to you
    #[command(subcommand, before_help = "Examples:\n  porchlight inbox list\n  porchlight inbox show 5f2c9a01")]
    Inbox(InboxCommand),
    /// Show how the launch goes: downloads, people, opt-ins, joins, messages
    #[command(before_help = stats::EXAMPLES)]
    Stats(StatsArguments),
    /// Print what your shell needs to complete these commands
    #[command(before_help = "Example:\n  porchlight completions zsh > ~/.zfunc/_porchlight")]
    Completions { shell: Shell },
    /// Print the manual page, or write one for each command
    #[command(before_help = "Example:\n  porchlight man | man -l -\n  porchlight man --to /usr/local/share/man/man1")]
    Man {
        /// Folder for the pages of all commands
        #[arg(long, value_name = "FOLDER")]
        to: Option<PathBuf>,
    },
}

/// What a command could not do, in one sentence.
#[derive(Debug, thiserror::Error)]
enum CommandFailure {
    /// Exit 2: used wrongly.
    #[error(transparent)]
    Settings(#[from] InvalidSettings),
    /// Exit 2 for settings, 1 otherwise.
    #[error(transparent)]
    Serve(#[from] ServeFailure),
    /// Exit 2: it would have to ask, and nobody is there to answer.
    #[error("This cannot be undone, and there is no terminal to ask at. Add --yes if you mean it.")]
    DnsFailure,
    /// Exit 1.
    #[error(transparent)]
    Check(#[from] CheckFailure),
    /// Exit 1.
    #[error(transparent)]
    Backup(#[from] BackupCommandFailure),
    /// Exit 1.
    #[error(transparent)]
    Move(#[from] MoveFailure),
    /// Exit 1.
    #[error(transparent)]
    Release(#[from] ReleaseFailure),
    /// Exit 1.
    #[error(transparent)]
    Letter(#[from] LetterCommandFailure),
    /// Exit 1.
    #[error(transparent)]
    People(#[from] PeopleFailure),
    /// Exit 1.
    #[error(transparent)]
    Inbox(#[from] InboxFailure),
    /// Exit 1.
    #[error(transparent)]
    Site(#[from] SiteFailure),
    /// Exit 1.
    #[error(transparent)]
    Opening(#[from] OpenFailure),
    /// Exit 1.
    #[error("{}", .0.sentence("Nothing was done"))]
    Store(#[from] StoreFailure),
    /// Exit 1.
    #[error("The manual cannot be written to {0}: {1}.")]
    Manual(String, std::io::Error),
    /// Exit 1.
    #[error("Not everything could be written to standard output: {0}.")]
    Unheard(std::io::Error),
    /// Exit 1.
    #[error("The program could not start: {0}.")]
    Runtime(#[from] std::io::Error),
}

impl CommandFailure {
    const fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(_) | Self::Serve(ServeFailure::Settings(_)) | Self::DnsFailure => 2,
            _ => 1,
        }
    }

    /// Names the database where its file is what is wrong.
    fn about(self, settings: &Settings) -> Self {
        use crate::actions::BackupFailure;
        use crate::store::CopyFailure::Store as CopyStore;

        let (Self::Store(damage)
        | Self::Backup(BackupCommandFailure::BackUp(BackupFailure::Copy(CopyStore(damage))))
        | Self::Move(MoveFailure::Copy(_, CopyStore(damage)))) = &self
        else {
            return self;
        };
        match (damage, Database::of(settings)) {
            (StoreFailure::Damaged(_), Ok(database)) => OpenFailure::Damaged(database, damage.clone()).into(),
            _ => self,
        }
    }
}

/// Runs the command that the arguments name.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = help::program().try_get_matches();
    let cli = match arguments.and_then(|arguments| Cli::from_arg_matches(&arguments)) {
        Ok(cli) => cli,
        Err(help_or_misuse) => return print(&help_or_misuse),
    };
    let done = run(cli).err();
    let unheard = terminal::unheard().map(CommandFailure::Unheard);
    let failures: Vec<_> = [done, unheard].into_iter().flatten().collect();
    for failure in &failures {
        tell(&failure.to_string());
    }
    failures.first().map_or(ExitCode::SUCCESS, |failure| ExitCode::from(failure.exit_code()))
}

/// Help is data that was asked for; what was typed wrongly is told.
fn print(help_or_misuse: &clap::Error) -> ExitCode {
    let code = u8::try_from(help_or_misuse.exit_code()).unwrap_or(1);
    match help_or_misuse.print() {
        Err(why) if code == 0 && why.kind() != std::io::ErrorKind::BrokenPipe => {
            tell(&CommandFailure::Unheard(why).to_string());
            ExitCode::FAILURE
        }
        _ => ExitCode::from(code),
    }
}

fn run(cli: Cli) -> Result<(), CommandFailure> {
    let file = cli.config.as_deref();
    let settings = Settings::load(file, &cli.settings);
    let known = settings.as_ref().ok().cloned();
    let done = match cli.command {
        Command::Serve { watch } => serve::run(settings?, watch),
        Command::Check(arguments) => check::run(arguments, settings),
        Command::Config(command) => config::run(command, ResolvedSetting::resolve(file, &cli.settings), settings),
        Command::Backup { folder } => backup::back_up_to(&settings?, &folder),
        Command::Restore { folder } => backup::restore_from(&settings?, &folder),
        Command::Move { to } => move_database::run(&settings?, &to),
        Command::Release(command) => release::run(command, &settings?),
        Command::Letter(command) => letter::run(command, &settings?),
        Command::People(command) => people::run(command, &settings?),
        Command::Inbox(command) => inbox::run(command, &settings?),
        Command::Stats(arguments) => stats::run(&arguments, &settings?),
        Command::Completions { shell } => {
            manual::complete(shell, help::program());
            Ok(())
        }
        Command::Man { to } => manual::print_or_write(help::program(), to.as_deref()),
    };
    done.map_err(|failure| match &known {
        Some(settings) => failure.about(settings),
        None => failure,
    })
}

/// Where the site is to be found, as far as that is known before anybody listens.
fn base_url(settings: &Settings) -> BaseUrl {
    settings.base_url.clone().unwrap_or_else(|| BaseUrl::of_listener(settings.listen))
}

/// Runs a command that works on the database itself.
fn at_work(command: impl Future<Output = Result<(), CommandFailure>>) -> Result<(), CommandFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(command);
    // What still runs in the background, such as looking up a name, is of no use any more.
    runtime.shutdown_background();
    done
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_fit_together() {
        help::program().debug_assert();
    }

    #[test]
    fn every_setting_has_its_name_in_all_three_dresses() {
        let command = Cli::command();
        for argument in
            command.get_arguments().filter(|argument| !["help", "version"].contains(&argument.get_id().as_str()))
        {
            let name = argument.get_id().as_str();
            assert_eq!(argument.get_long(), Some(name.replace('_', "-").as_str()));
            assert_eq!(argument.get_env().unwrap(), format!("PORCHLIGHT_{}", name.to_uppercase()).as_str());
        }
    }
}
