//! `porchlight new` writes a site to begin with; `porchlight site` changes one.

use std::path::Path;

use clap::Subcommand;

use super::activity::record;
use super::failure::Failure;
use super::run::{Access, block_on, open_store_of_any_app};
use super::terminal::print_line;
use crate::clock::Clock;
use crate::config::Settings;
use crate::domain::desk::Change;
use crate::domain::time::Day;
use crate::site::{AppName, Content, SiteFacts, built_in_names, copy_built_in, write_starter};

#[derive(Debug, Subcommand)]
pub(super) enum SiteCommand {
    /// Copy built-in pages, templates or assets into `site_dir`, to change them
    #[command(before_help = "Examples:\n  porchlight site copy pages/contact.md templates/letter.html\n  \
                             porchlight site copy --list")]
    Copy {
        /// Names of the files, such as `pages/contact.md`
        #[arg(value_name = "NAME", required_unless_present = "list")]
        names: Vec<String>,

        /// List all names instead
        #[arg(long, conflicts_with = "names")]
        list: bool,

        /// Overwrite files that are there already
        #[arg(long)]
        force: bool,
    },
    /// Record the name in site.toml as that of the app in the database, after the app was renamed
    #[command(before_help = "Example:\n  porchlight site rename")]
    Rename,
}

pub(super) fn run(command: SiteCommand, settings: &Settings) -> Result<(), Failure> {
    match command {
        SiteCommand::Copy { list: true, .. } => {
            built_in_names().for_each(|name| print_line(&name));
            Ok(())
        }
        SiteCommand::Copy { names, force, .. } => copy(settings, &names, force),
        SiteCommand::Rename => rename(settings),
    }
}

fn copy(settings: &Settings, names: &[String], overwrite: bool) -> Result<(), Failure> {
    let folder = settings.site_dir.as_deref().ok_or_else(|| {
        Failure::new(
            "Set `site_dir` to the folder of your site, or make one with `porchlight new FOLDER --name \"My App\"`.",
        )
    })?;
    Content::with_folder(folder)?;
    for path in copy_built_in(folder, names, overwrite).map_err(Failure::new)? {
        print_line(&format!("Wrote {}.", path.display()));
    }
    Ok(())
}

fn rename(settings: &Settings) -> Result<(), Failure> {
    let SiteFacts { name, .. } = SiteFacts::read(&Content::from_settings(settings)?)?;
    block_on(async {
        let store = open_store_of_any_app(settings, Access::Write).await?;
        let before = store.app_name().await?;
        store.rename_app(&name).await?;
        if before.as_ref() != Some(&name) {
            record(&store, Change::NamedApp(name.clone())).await;
        }
        store.close().await;
        print_line(&match before {
            Some(before) if before != name => format!("The database belonged to {before}, and belongs to {name} now."),
            _ => format!("The database belongs to {name}."),
        });
        Ok(())
    })
}

/// The files that makers change first, and what each is for.
const PURPOSES: [(&str, &str); 8] = [
    ("site.toml", "name, price, system and other facts; start here"),
    ("pages/home.md", "the home page"),
    ("pages/about.md", "the page about the app"),
    ("templates/pictures/window.html", "the picture at the top of the home page"),
    ("templates/pictures/symbols.html", "the mark beside the name"),
    ("assets/og.png", "the picture of links that people share, 1200 by 630"),
    ("porchlight.toml", "the settings; all commands in this folder are for this site"),
    ("assets/icon.svg", "the icon; favicon.ico and touch-icon.png beside it"),
];

pub(super) fn run_new(folder: &Path, name: &AppName, language: &str) -> Result<(), Failure> {
    let files = write_starter(folder, name, language, Day::of(Clock::System.now())).map_err(Failure::new)?;
    let shown = folder.display();
    print_line(&format!("Wrote a site for {} to {shown}, {} files. Change these first:", name.as_str(), files.len()));
    for (file, purpose) in PURPOSES {
        print_line(&format!("  {file:<33} {purpose}"));
    }
    print_line(&format!(
        "All other pages come with Porchlight and speak of {} as well. See it, and change it while it runs:",
        name.as_str()
    ));
    print_line(&format!("  cd {} && porchlight serve --watch", for_shell(&shown.to_string())));
    Ok(())
}

/// Quotes the argument of a command if a shell needs that.
fn for_shell(argument: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-".contains(c);
    if argument.chars().all(is_plain) { argument.to_owned() } else { format!("'{}'", argument.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_command_can_be_pasted() {
        assert_eq!(for_shell("/srv/my-site.2"), "/srv/my-site.2");
        assert_eq!(for_shell("my site"), "'my site'");
        assert_eq!(for_shell("it's"), r"'it'\''s'");
    }
}
