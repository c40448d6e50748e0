//! `porchlight completions` and `porchlight man`: what is made from the arguments themselves.

use std::path::Path;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

use super::{CommandFailure, say_as_is, tell};

pub(super) fn complete(shell: Shell, mut program: Command) {
    let (name, mut script) = (program.get_name().to_owned(), Vec::new());
    clap_complete::generate(shell, &mut program, name, &mut script);
    say_as_is(&script);
}

pub(super) fn print_or_write(program: Command, folder: Option<&Path>) -> Result<(), CommandFailure> {
    let Some(folder) = folder else {
        let mut page = Vec::new();
        Man::new(program).render(&mut page)?;
        say_as_is(&page);
        return Ok(());
    };
    let unwritable = |why| CommandFailure::Manual(folder.display().to_string(), why);
    std::fs::create_dir_all(folder).map_err(unwritable)?;
    clap_mangen::generate_to(program, folder).map_err(unwritable)?;
    tell(&format!("The pages are in {}.", folder.display()));
    Ok(())
}
