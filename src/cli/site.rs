//! `porchlight new`: writes a site to begin with.

use std::path::Path;

use super::failure::Failure;
use super::terminal::print_line;
use crate::clock::Clock;
use crate::domain::time::Day;
use crate::site::{AppName, write_starter};

/// The files that makers change first, and what each is for.
const PURPOSES: [(&str, &str); 7] = [
    ("site.toml", "name, price, system and other facts; start here"),
    ("pages/home.md", "the home page"),
    ("pages/about.md", "the page about the app"),
    ("templates/pictures/window.html", "the picture at the top of the home page"),
    ("templates/pictures/symbols.html", "the mark beside the name"),
    ("assets/og.png", "the picture of links that people share, 1200 by 630"),
    ("assets/icon.svg", "the icon; favicon.ico and touch-icon.png beside it"),
];

pub(super) fn run(folder: &Path, name: &AppName) -> Result<(), Failure> {
    let files = write_starter(folder, name, Day::of(Clock::System.now())).map_err(Failure::new)?;
    let shown = folder.display();
    print_line(&format!("Wrote a site for {} to {shown}, {} files. Change these first:", name.as_str(), files.len()));
    for (file, purpose) in PURPOSES {
        print_line(&format!("  {file:<33} {purpose}"));
    }
    print_line(&format!(
        "All other pages come with Porchlight and speak of {} as well. See it, and change it while it runs:",
        name.as_str()
    ));
    print_line(&format!("  porchlight serve --site-dir {} --watch", for_shell(&shown.to_string())));
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
