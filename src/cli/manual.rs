//! `porchlight completions` and `porchlight man`: what is made from the arguments themselves.

use std::io;
use std::path::Path;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use super::{CommandFailure, say_as_is, tell};

pub(super) fn complete(shell: Shell, mut program: Command) {
    let (name, mut script) = (program.get_name().to_owned(), Vec::new());
    clap_complete::generate(shell, &mut program, name, &mut script);
    say_as_is(&script);
}

pub(super) fn print_or_write(program: Command, folder: Option<&Path>) -> Result<(), CommandFailure> {
    let Some(folder) = folder else {
        let (_, page) = page(program)?;
        say_as_is(&page);
        return Ok(());
    };
    let unwritable = |why| CommandFailure::Manual(folder.display().to_string(), why);
    std::fs::create_dir_all(folder).map_err(unwritable)?;
    let mut program = program.disable_help_subcommand(true);
    program.build();
    write_all(&program, folder).map_err(unwritable)?;
    tell(&format!("The pages are in {}.", folder.display()));
    Ok(())
}

fn write_all(command: &Command, folder: &Path) -> io::Result<()> {
    let (name, page) = page(command.clone())?;
    std::fs::write(folder.join(name), page)?;
    command.get_subcommands().try_for_each(|command| write_all(command, folder))
}

/// The page of a command and its file's name. Examples stand where readers look for them first.
fn page(command: Command) -> io::Result<(String, Vec<u8>)> {
    let examples = command.get_before_help().map(ToString::to_string).unwrap_or_default();
    let (has_subcommands, has_version) = (command.has_subcommands(), command.get_version().is_some());
    let (man, mut page) = (Man::new(command), Vec::new());
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    section("EXAMPLES", examples.lines().skip(1)).to_writer(&mut page)?;
    man.render_options_section(&mut page)?;
    if has_subcommands {
        man.render_subcommands_section(&mut page)?;
    }
    man.render_extra_section(&mut page)?;
    if has_version {
        man.render_version_section(&mut page)?;
    }
    Ok((man.get_filename(), page))
}

/// Lines that stay as they are.
fn section<'a>(name: &str, lines: impl Iterator<Item = &'a str>) -> Roff {
    let mut section = Roff::new();
    section.control("SH", [name]);
    section.control("nf", []);
    for line in lines {
        section.text([roman(line)]);
    }
    section.control("fi", []);
    section
}
