//! `porchlight completions` and `porchlight man`, generated from the argument definitions.

use std::io;
use std::path::Path;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use super::{CommandFailure, eprint_line, print_bytes};

pub(super) fn print_completions(shell: Shell, mut program: Command) {
    let (name, mut script) = (program.get_name().to_owned(), Vec::new());
    clap_complete::generate(shell, &mut program, name, &mut script);
    print_bytes(&script);
}

pub(super) fn print_or_write(program: Command, folder: Option<&Path>) -> Result<(), CommandFailure> {
    let Some(folder) = folder else {
        let (_, page) = page(program)?;
        print_bytes(page.as_bytes());
        return Ok(());
    };
    let failed = |error| CommandFailure::Manual(folder.display().to_string(), error);
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut program = program.disable_help_subcommand(true);
    program.build();
    write_all(&program, folder).map_err(failed)?;
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
