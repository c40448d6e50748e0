//! Help texts: `-h` shows the flags of a command, `--help` and the manual also list every setting.

use clap::{Command, CommandFactory};

use super::Cli;

pub(super) const EXAMPLES: &str = "\
Examples:
  porchlight serve
      Run a local preview at http://127.0.0.1:8080, with data in ./data
  porchlight serve --base-url https://troupe.example --acme-email me@troupe.example
      Run in production, with https on port 443 and a certificate from Let's Encrypt
  porchlight release publish Troupe.dmg --version 1.4.0
      Publish a disk image as the newest release";

const SHORT_FOOTER: &str = "Every setting is also a flag, such as --data-dir. Use --help to list them.";

const LONG_FOOTER: &str = "\
A flag overrides the environment, which overrides porchlight.toml. To keep secrets out of the environment, set \
PORCHLIGHT_DATABASE_URL_FILE, PORCHLIGHT_OPS_TOKEN_FILE or PORCHLIGHT_SMTP_URL_FILE to a file that holds the value.";

/// Returns the argument definitions with help footers.
pub(super) fn program() -> Command {
    // Every command accepts every setting. Short help shows only `--config`.
    with_footers(Cli::command().mut_args(|argument| {
        let is_setting = argument.is_global_set() && argument.get_id() != "config";
        argument.hide_short_help(is_setting)
    }))
}

fn with_footers(command: Command) -> Command {
    command.after_help(SHORT_FOOTER).after_long_help(LONG_FOOTER).mut_subcommands(with_footers)
}
