//! The unread mails of a Maildir, each a file in `new` or `cur`.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// What starts the flags at the end of a file name.
const FLAGS: &str = ":2,";
/// The flag of a mail that was read.
const SEEN: char = 'S';

/// Returns the files of all mails that were not read, oldest first as far as their names tell.
pub(super) fn unread_mails(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut mails = Vec::new();
    for name in ["new", "cur"] {
        for entry in folder.join(name).read_dir()? {
            let entry = entry?;
            if is_unread(&entry.file_name()) && entry.file_type()?.is_file() {
                mails.push(entry.path());
            }
        }
    }
    mails.sort_by(|one, other| one.file_name().cmp(&other.file_name()));
    Ok(mails)
}

fn is_unread(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    !name.starts_with('.') && !name.split_once(FLAGS).is_some_and(|(_, flags)| flags.contains(SEEN))
}

/// Moves a mail to `cur` and marks it as read, as a mail client does. Nothing happens if another process did.
pub(super) fn mark_as_read(folder: &Path, mail: &Path) -> io::Result<()> {
    let name = with_seen_flag(mail.file_name().unwrap_or_default());
    ignore_missing(std::fs::rename(mail, folder.join("cur").join(name)))
}

/// Flags are sorted.
fn with_seen_flag(name: &OsStr) -> OsString {
    let Some((unique, flags)) = name.to_str().and_then(|name| name.split_once(FLAGS)) else {
        let mut name = name.to_owned();
        name.push(format!("{FLAGS}{SEEN}"));
        return name;
    };
    let mut flags: Vec<char> = flags.chars().chain([SEEN]).collect();
    flags.sort_unstable();
    format!("{unique}{FLAGS}{}", flags.into_iter().collect::<String>()).into()
}

/// Deletes a mail. Nothing happens if another process did.
pub(super) fn delete(mail: &Path) -> io::Result<()> {
    ignore_missing(std::fs::remove_file(mail))
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_is_read_once_and_keeps_its_other_flags() {
        for (name, marked) in [
            ("1.M1P1.host", "1.M1P1.host:2,S"),
            ("1.M1P1.host:2,", "1.M1P1.host:2,S"),
            ("1.M1P1.host:2,FT", "1.M1P1.host:2,FST"),
        ] {
            assert!(is_unread(OsStr::new(name)), "{name}");
            assert_eq!(with_seen_flag(OsStr::new(name)), marked);
            assert!(!is_unread(OsStr::new(marked)), "{marked}");
        }
        assert!(!is_unread(OsStr::new(".hidden")));
    }
}
