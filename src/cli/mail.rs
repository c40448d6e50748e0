//! `porchlight mail`: the key that signs all mail (DKIM), and its DNS record.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;
use tempfile::NamedTempFile;

use super::failure::{Failure, OrFail};
use super::terminal::{eprint_line, print_line, print_record};
use crate::config::{InvalidSettings, Settings};
use crate::domain::mail::{DkimRecord, DkimSelector, KeyKind};
use crate::mail::{DkimKey, generate_dkim_key};

#[derive(Debug, Subcommand)]
pub(super) enum MailCommand {
    /// Make a key, and print its DNS record and the settings
    ///
    /// Only you can read the file. A file that exists is never overwritten.
    #[command(before_help = "Examples:\n  porchlight mail key --out dkim.pem\n  \
                             porchlight mail key --out dkim-2027.pem --selector mail-2027")]
    Key(KeyArguments),
    /// Print the DNS record of the key in the setting `dkim_key`
    #[command(before_help = "Examples:\n  porchlight mail record\n  porchlight mail record --json")]
    Record {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args, Debug)]
pub(super) struct KeyArguments {
    /// File for the key
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Name of the key in DNS; a new key needs a new name
    #[arg(long, value_name = "NAME", default_value = "mail", value_parser = DkimSelector::parse)]
    selector: DkimSelector,

    /// Make an Ed25519 key, which some large receivers do not verify [default: RSA with 2048 bits]
    #[arg(long)]
    ed25519: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(command: MailCommand, settings: &Settings) -> Result<(), Failure> {
    match command {
        MailCommand::Key(arguments) => make_key(&arguments, settings),
        MailCommand::Record { json } => print_configured_record(settings, json),
    }
}

fn make_key(arguments: &KeyArguments, settings: &Settings) -> Result<(), Failure> {
    let KeyArguments { out, selector, ed25519, json } = arguments;
    let used = settings.mail.as_ref().and_then(|mail| mail.dkim.as_ref());
    if let Some(used) = used.filter(|used| used.selector == *selector && used.key.exists()) {
        return Err(Failure::new(format!(
            "The selector {selector} is in use for the key in {}. Name another with --selector, so that mail on its way can \
             still be verified.",
            used.key.display()
        )));
    }
    let kind = if *ed25519 { KeyKind::Ed25519 } else { KeyKind::Rsa };
    let pem = generate_dkim_key(kind).or_fail(|failure| format!("The key was not made: {failure}."))?;
    write_key(out, &pem)?;
    let key = DkimKey::read(out)?;
    let path = out.canonicalize().unwrap_or_else(|_| out.clone()).display().to_string();
    let domain = settings.mail.as_ref().map(|mail| mail.from.email().domain());
    print_dns_record(selector, domain, key.record(), &path, *json);
    if !json {
        print_line(&format!(
            "\nOnce DNS has the record, add these settings, and run `porchlight check`:\n\n\
             dkim_selector = \"{selector}\"\ndkim_key = {path:?}"
        ));
    }
    if domain.is_none() {
        eprint_line(
            "\nThe domain of `mail_from` follows the name. Once `smtp_url` is set, `porchlight mail record` prints all of it.",
        );
    }
    Ok(())
}

/// Writes a file that only its owner can read, unless there is one.
fn write_key(path: &Path, pem: &str) -> Result<(), Failure> {
    let failure = |error: io::Error| {
        let shown = path.display();
        Failure::new(match error.kind() {
            io::ErrorKind::AlreadyExists => {
                format!("{shown} exists, and no key is ever overwritten. Name another file with --out.")
            }
            _ => format!("The key cannot be written to {shown}: {error}."),
        })
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut temporary = NamedTempFile::new_in(folder).map_err(failure)?;
    temporary.write_all(pem.as_bytes()).map_err(failure)?;
    temporary.as_file().sync_all().map_err(failure)?;
    temporary.persist_noclobber(path).map_err(|refused| failure(refused.error))?;
    Ok(())
}

fn print_configured_record(settings: &Settings, as_json: bool) -> Result<(), Failure> {
    let missing = |name, reason: &str| InvalidSettings::new(name, reason);
    let mail = settings.mail.as_ref().ok_or_else(|| missing("smtp_url", "it is not set, and all mail needs it"))?;
    let dkim = mail.dkim.as_ref();
    let dkim = dkim.ok_or_else(|| missing("dkim_key", "it is not set; `porchlight mail key` makes a key"))?;
    let (key, path) = (DkimKey::read(&dkim.key)?, dkim.key.display().to_string());
    print_dns_record(&dkim.selector, Some(mail.from.email().domain()), key.record(), &path, as_json);
    Ok(())
}

/// Prints a record in every form that DNS providers ask for. `domain` is `None` if it is not set yet, and `key` is the file
/// with the private key.
fn print_dns_record(selector: &DkimSelector, domain: Option<&str>, record: &DkimRecord, key: &str, as_json: bool) {
    let (name, end) = match domain {
        Some(domain) => (selector.record_name(domain), "."),
        None => (selector.relative_record_name(), ""),
    };
    let (value, zone_file) = (record.to_string(), record.zone_file_lines(&format!("{name}{end}")));
    let json = json!({
        "name": name, "type": "TXT", "value": value, "zone_file": zone_file,
        "selector": selector.as_str(), "algorithm": record.kind.as_str(), "key": key,
    });
    let text = format!(
        "The DNS record for the key in {key}, for the form of a DNS provider:\n\n\
         Type:  TXT\nName:  {name}\nValue: {value}\n\n\
         And the same record for a zone file:\n\n{zone_file}"
    );
    print_record(as_json, &json, &text);
}
