//! The command line: floor 5. One file a command.

mod serve;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::{InvalidSettings, Settings, Written};
use crate::serve::ServeFailure;

/// The website service of a native Mac app: pages for people and agents, downloads, contact, MCP.
#[derive(Debug, Parser)]
#[command(name = "porchlight", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// File with settings [default: porchlight.toml in the working folder, if it is there]
    #[arg(long, global = true, env = "PORCHLIGHT_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    settings: Written,
}

const EXAMPLES: &str = "\
Examples:
  porchlight serve
      A local preview at http://127.0.0.1:8080, data in ./data
  porchlight serve --listen 0.0.0.0:80 --base-url https://troupe.example
      The real thing, behind a proxy that speaks https

A flag beats the environment, which beats porchlight.toml. PORCHLIGHT_DATABASE_URL_FILE and
PORCHLIGHT_SMTP_URL_FILE may name a file that holds the value, so that a password need not stand in
the environment.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the site until told to stop
    Serve {
        /// Show changes in `site_dir` as they are made
        #[arg(long)]
        watch: bool,
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
    /// Exit 1.
    #[error("The program could not start: {0}.")]
    Runtime(#[from] std::io::Error),
}

impl CommandFailure {
    const fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(_) | Self::Serve(ServeFailure::Settings(_)) => 2,
            Self::Serve(_) | Self::Runtime(_) => 1,
        }
    }
}

/// Runs the command that the arguments name.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = Settings::load(cli.config.as_deref(), &cli.settings).map_err(CommandFailure::from).and_then(
        |settings| match cli.command {
            Command::Serve { watch } => serve::run(settings, watch),
        },
    );
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            tell(&failure.to_string());
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Writes for the person at the terminal; data goes to standard output instead.
#[expect(clippy::print_stderr, reason = "this is the one place that speaks to the person")]
fn tell(line: &str) {
    eprintln!("{line}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_fit_together() {
        Cli::command().debug_assert();
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
