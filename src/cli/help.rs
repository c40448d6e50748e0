//! Help, manual pages and completions, generated from the argument definitions: `-h` shows the flags of a command,
//! `--help` and the manual also list every setting.

use std::io;
use std::path::Path;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use super::failure::{Failure, OrFail};
use super::terminal::{eprint_line, print_bytes};

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

/// Adds the footers of the help to the argument definitions.
pub(super) fn program(definitions: Command) -> Command {
    // Every command accepts every setting. Short help shows only `--config`.
    with_footers(definitions.mut_args(|argument| {
        let is_setting = argument.is_global_set() && argument.get_id() != "config";
        argument.hide_short_help(is_setting)
    }))
}

fn with_footers(command: Command) -> Command {
    command.after_help(SHORT_FOOTER).after_long_help(LONG_FOOTER).mut_subcommands(with_footers)
}

/// `porchlight completions`
pub(super) fn print_completions(definitions: Command, shell: Shell) {
    let (mut program, mut script) = (program(definitions), Vec::new());
    clap_complete::generate(shell, &mut program, "porchlight", &mut script);
    print_bytes(&script);
}

/// `porchlight man`
pub(super) fn print_or_write_manual(definitions: Command, folder: Option<&Path>) -> Result<(), Failure> {
    let Some(folder) = folder else {
        print_bytes(page(program(definitions))?.1.as_bytes());
        return Ok(());
    };
    let mut program = program(definitions).disable_help_subcommand(true);
    program.build();
    std::fs::create_dir_all(folder)
        .and_then(|()| write_all(&program, folder))
        .or_fail(|error| format!("The manual pages cannot be written to {}: {error}.", folder.display()))?;
    eprint_line(&format!("The manual pages are in {}.", folder.display()));
    Ok(())
}

fn write_all(command: &Command, folder: &Path) -> io::Result<()> {
    let (name, page) = page(command.clone())?;
    std::fs::write(folder.join(name), page)?;
    command.get_subcommands().try_for_each(|command| write_all(command, folder))
}

/// Returns the file name and the text of a command's page. `clap_mangen` omits `before_help`, so the examples are
/// inserted here.
fn page(command: Command) -> io::Result<(String, String)> {
    let mut examples = Roff::new();
    examples.control("SH", ["EXAMPLES"]).control("nf", []);
    for line in command.get_before_help().map(ToString::to_string).unwrap_or_default().lines().skip(1) {
        examples.text([roman(line)]);
    }
    examples.control("fi", []);
    let (man, mut page) = (Man::new(command), Vec::new());
    man.render(&mut page)?;
    let page = String::from_utf8_lossy(&page);
    Ok((man.get_filename(), page.replacen(".SH OPTIONS", &(examples.to_roff() + ".SH OPTIONS"), 1)))
}
