//! The arguments of the program, and which function runs a command.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::Resettable;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

use super::check::{self, CheckArguments};
use super::config::{self, ConfigCommand};
use super::contact::{self, InboxCommand};
use super::desk::{self, DeskArguments};
use super::failure::Failure;
use super::letters::{self, BounceArguments, LetterCommand};
use super::mail::{self, MailCommand};
use super::people::{self, PeopleCommand};
use super::releases::{self, ReleaseCommand};
use super::site::{self, SiteCommand};
use super::statistics::{self, StatsArguments};
use super::terminal::{self, eprint_line};
use super::tokens::{self, TokenCommand};
use super::{backup, health, help, serve};
use crate::config::{RawSettings, ResolvedSetting, Settings};
use crate::logging;
use crate::site::{AppName, Language, starter_languages};

/// The website service of a native Mac app: pages for people and agents, downloads, contact, MCP.
#[derive(Debug, Parser)]
#[command(name = "porchlight", version = env!("PORCHLIGHT_VERSION"), before_help = help::EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// File with settings [default: porchlight.toml in the working directory, else /etc/porchlight/porchlight.toml, if it exists]
    #[arg(long, global = true, env = "PORCHLIGHT_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    settings: RawSettings,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the service until it is stopped
    #[command(before_help = "Example:\n  porchlight serve --base-url https://troupe.example")]
    Serve {
        /// Apply changes in `site_dir` without a restart
        #[arg(long)]
        watch: bool,
    },
    /// Make a site of your own to begin with
    #[command(before_help = "Example:\n  porchlight new mysite --name \"My App\"")]
    New {
        /// Folder for the site; created if missing, and must be empty
        folder: PathBuf,

        /// Name of your app
        #[arg(long, value_parser = AppName::parse)]
        name: AppName,

        /// Language of its texts: de, en or fr
        #[arg(long, default_value = Language::ENGLISH, value_parser = starter_language)]
        language: String,
    },
    /// Copy built-in files of the site to change them, or record a new name of the app
    #[command(subcommand, before_help = "Examples:\n  porchlight site copy pages/contact.md\n  porchlight site rename")]
    Site(SiteCommand),
    /// Check the setup: settings, database, disk, site, release, https, mail, sender, dkim
    #[command(before_help = check::EXAMPLES)]
    Check(CheckArguments),
    /// Ask the running service on this machine whether it is healthy; for containers and scripts
    #[command(before_help = "Examples:\n  porchlight health\n  porchlight health --ready")]
    Health {
        /// Also require that the database is reachable, writes succeed and the newest image can be read
        #[arg(long)]
        ready: bool,
    },
    /// Show the current settings, or print an example file
    #[command(subcommand, before_help = "Example:\n  porchlight config show")]
    Config(ConfigCommand),
    /// Write a backup of everything to a folder; the service may keep running
    #[command(
        args_conflicts_with_subcommands = true,
        before_help = "Examples:\n  porchlight backup /backups/2026-11-15\n  porchlight backup --keep 7 /backups\n  \
                       porchlight backup key > backup.key"
    )]
    Backup {
        #[command(subcommand)]
        command: Option<BackupCommand>,

        /// Folder for the backup; created if missing, and must be empty unless --keep is given
        #[arg(required = true)]
        folder: Option<PathBuf>,

        /// Write the backup to a folder inside, named by the time, and then delete all but the newest of these backups
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
        keep: Option<u32>,
    },
    /// Restore a backup into an empty database
    #[command(before_help = "Examples:\n  porchlight restore /backups/2026-11-15 --data-dir /srv/porchlight\n  \
                       porchlight restore s3://troupe-backups/site/2026-11-15 --key backup.key")]
    Restore {
        /// Folder that `porchlight backup` wrote, or a bucket: `s3://bucket/prefix/DAY`, without DAY for the newest backup there
        #[arg(value_name = "FOLDER|URL")]
        from: PathBuf,
        /// File with the secret key that `porchlight backup key` printed; for a bucket
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
        /// Restore a backup that has no manifest.json, or was changed since; only if you trust it
        #[arg(long)]
        unverified: bool,
    },
    /// Copy the embedded database to PostgreSQL; the original is not changed
    #[command(before_help = "Example:\n  porchlight move --to postgres://porchlight@db.example/porchlight")]
    Move {
        /// New and empty database, `postgres://user@host/database`; keep the password in `PGPASSFILE`
        #[arg(long, value_name = "URL", env = "PORCHLIGHT_MOVE_TO", hide_env_values = true)]
        to: String,
    },
    /// Publish, list and withdraw disk images
    #[command(subcommand, before_help = "Example:\n  porchlight release publish Troupe.dmg --version 1.4.0")]
    Release(ReleaseCommand),
    /// Print a link that signs you in to the desk, where all of this is done in a browser
    ///
    /// The link works once and for ten minutes, and the session that begins with it for thirty days.
    #[command(before_help = desk::EXAMPLES)]
    Desk(DeskArguments),
    /// Create, list and revoke tokens, by which programs publish over HTTP
    #[command(subcommand, before_help = "Example:\n  porchlight token create github-actions --may publish")]
    Token(TokenCommand),
    /// Send the monthly letter to everybody who opted in
    #[command(
        subcommand,
        before_help = "Examples:\n  porchlight letter preview november.md\n  porchlight letter send november.md"
    )]
    Letter(LetterCommand),
    /// Make the key that signs all mail (DKIM), and print its DNS record
    #[command(subcommand, before_help = "Examples:\n  porchlight mail key --out dkim.pem\n  porchlight mail record")]
    Mail(MailCommand),
    /// Read letters that were returned as undeliverable, and suppress addresses that do not exist
    ///
    /// A failure of the mailbox suppresses the address, and one that may pass is counted. Everything else changes nothing.
    #[command(before_help = letters::BOUNCE_EXAMPLES)]
    Bounce(BounceArguments),
    /// Show, list, export, import, erase, purge and suppress people
    #[command(subcommand, before_help = "Example:\n  porchlight people show ada@example.com")]
    People(PeopleCommand),
    /// Read contact messages, mark them as answered, and retry or discard them
    #[command(subcommand, before_help = "Examples:\n  porchlight inbox list\n  porchlight inbox show 5f2c9a01")]
    Inbox(InboxCommand),
    /// Show statistics: downloads, new people, opt-ins, joins, messages
    #[command(before_help = statistics::EXAMPLES)]
    Stats(StatsArguments),
    /// Print a completion script for your shell
    #[command(before_help = "Example:\n  porchlight completions zsh > ~/.zfunc/_porchlight")]
    Completions {
        /// Shell to generate the script for
        shell: Shell,
    },
    /// Print the manual page, or write one for each command
    #[command(before_help = "Examples:\n  porchlight man | man -l -\n  porchlight man --to /usr/local/share/man/man1")]
    Man {
        /// Write the pages of all commands to this folder
        #[arg(long, value_name = "FOLDER")]
        to: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
enum BackupCommand {
    /// Make a key pair for backups in a bucket: print the secret key once, and the setting with the public one
    #[command(before_help = "Example:\n  porchlight backup key > backup.key")]
    Key,
}

/// Parses the arguments and runs the command.
pub fn main() -> ExitCode {
    let arguments = help::program(Cli::command()).try_get_matches().map_err(without_environment);
    let cli = match arguments.and_then(|arguments| Cli::from_arg_matches(&arguments)) {
        Ok(cli) => cli,
        Err(help_or_error) => return print_clap_message(&help_or_error),
    };
    let command_failure = run(cli).err();
    let stdout_failure = terminal::stdout_error().map(|error| stdout_failure(&error));
    let failures: Vec<_> = [command_failure, stdout_failure].into_iter().flatten().collect();
    for failure in &failures {
        eprint_line(&failure.sentence);
    }
    logging::flush();
    failures.first().map_or(ExitCode::SUCCESS, |failure| ExitCode::from(failure.exit_code))
}

/// The usage in an error lists what is given, also by the environment: only what was typed belongs there.
fn without_environment(error: clap::Error) -> clap::Error {
    let definitions = Cli::command().mut_args(|setting| setting.env(Resettable::Reset));
    let typed = help::program(definitions).try_get_matches().err();
    typed.filter(|typed| typed.kind() == error.kind() && error.use_stderr()).unwrap_or(error)
}

fn stdout_failure(error: &std::io::Error) -> Failure {
    Failure::new(format!("Writing to standard output failed: {error}."))
}

/// Prints requested help to standard output, or a usage error to standard error.
fn print_clap_message(help_or_error: &clap::Error) -> ExitCode {
    let code = u8::try_from(help_or_error.exit_code()).unwrap_or(1);
    match help_or_error.print() {
        Err(error) if code == 0 && error.kind() != std::io::ErrorKind::BrokenPipe => {
            eprint_line(&stdout_failure(&error).sentence);
            ExitCode::FAILURE
        }
        _ => ExitCode::from(code),
    }
}

fn starter_language(text: &str) -> Result<String, String> {
    let known = starter_languages();
    if known.contains(text) {
        return Ok(text.to_owned());
    }
    let known: Vec<_> = known.into_iter().collect();
    Err(format!("new sites are written in {}; any other language is a setting of site.toml", known.join(", ")))
}

fn run(cli: Cli) -> Result<(), Failure> {
    let file = cli.config.as_deref();
    let settings = Settings::load(file, &cli.settings);
    let valid_settings = settings.as_ref().ok().cloned();
    let result = match cli.command {
        Command::Serve { watch } => serve::run(settings?, watch),
        Command::New { folder, name, language } => site::run_new(&folder, &name, &language),
        Command::Site(command) => site::run(command, &settings?),
        Command::Check(arguments) => check::run(arguments, settings),
        Command::Config(command) => config::run(command, ResolvedSetting::resolve(file, &cli.settings), settings),
        Command::Health { ready } => health::run(&settings?, ready),
        Command::Backup { command, folder, keep } => match (command, folder.unwrap_or_default(), keep) {
            (Some(BackupCommand::Key), _, _) => {
                backup::print_key();
                Ok(())
            }
            (None, folder, None) => backup::run_backup(&settings?, &folder),
            (None, folder, Some(number)) => backup::run_rotation(&settings?, &folder, number),
        },
        Command::Restore { from, key, unverified } => {
            backup::run_restore(&settings?, &from, key.as_deref(), unverified)
        }
        Command::Move { to } => backup::run_move(&settings?, &to),
        Command::Release(command) => releases::run(command, &settings?),
        Command::Desk(arguments) => desk::run(&arguments, &settings?),
        Command::Token(command) => tokens::run(command, &settings?),
        Command::Letter(command) => letters::run(command, &settings?),
        Command::Mail(command) => mail::run(command, &settings?),
        Command::Bounce(arguments) => letters::run_bounce(&arguments, settings),
        Command::People(command) => people::run(command, &settings?),
        Command::Inbox(command) => contact::run(command, &settings?),
        Command::Stats(arguments) => statistics::run(&arguments, &settings?),
        Command::Completions { shell } => {
            help::print_completions(Cli::command(), shell);
            Ok(())
        }
        Command::Man { to } => help::print_or_write_manual(Cli::command(), to.as_deref()),
    };
    result.map_err(|failure| match &valid_settings {
        Some(settings) => failure.with_database(settings),
        None => failure,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_argument_definitions_are_valid() {
        help::program(Cli::command()).debug_assert();
    }

    #[test]
    fn every_setting_has_the_same_name_in_file_flag_and_environment() {
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
