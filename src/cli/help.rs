//! Help: `-h` shows what matters for a command, `--help` and the manual every setting as well.

use clap::{Command, CommandFactory};

use super::Cli;

pub(super) const EXAMPLES: &str = "\
Examples:
  porchlight serve
      A local preview at http://127.0.0.1:8080, data in ./data
  porchlight serve --listen 0.0.0.0:80 --base-url https://troupe.example
      The real thing, behind a proxy that speaks https
  porchlight release publish Troupe.dmg --version 1.4.0
      The newest disk image, from this moment on";

const FEW_WORDS: &str = "Every setting is a flag, too, such as --data-dir: --help lists them.";

const MORE_WORDS: &str = "\
A flag beats the environment, which beats porchlight.toml. PORCHLIGHT_DATABASE_URL_FILE, PORCHLIGHT_OPS_TOKEN_FILE and \
PORCHLIGHT_SMTP_URL_FILE may name a file that holds the value, so that a password need not stand in the environment.";

/// The arguments, and how help shows them.
pub(super) fn program() -> Command {
    // Settings are known everywhere, but for the name of their file they matter to few commands.
    explained(Cli::command().mut_args(|argument| {
        let is_setting = argument.is_global_set() && argument.get_id() != "config";
        argument.hide_short_help(is_setting)
    }))
}

fn explained(command: Command) -> Command {
    command.after_help(FEW_WORDS).after_long_help(MORE_WORDS).mut_subcommands(explained)
}
