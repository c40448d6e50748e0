//! `porchlight mail`: the key that signs all mail (DKIM), and its DNS record.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;
use tempfile::NamedTempFile;

use super::{CommandFailure, eprint_line, print_json, print_line};
use crate::config::{InvalidSettings, Settings};
use crate::domain::dkim::DkimSelector;
use crate::domain::dkim_record::{DkimRecord, KeyKind};
use crate::mail::{DkimKey, GenerateFailure, generate_dkim_key};

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

/// Why a `mail` command failed, in one sentence.
#[derive(Debug, thiserror::Error)]
pub(super) enum MailCommandFailure {
    #[error("The key was not made: {0}.")]
    Generate(#[from] GenerateFailure),
    #[error("{0} exists, and no key is ever overwritten. Name another file with --out.")]
    Exists(String),
    #[error("The key cannot be written to {0}: {1}.")]
    Write(String, io::Error),
    #[error(
        "The selector {0} is in use for the key in {1}. Name another with --selector, so that mail on its way can still be \
         verified."
    )]
    SelectorInUse(DkimSelector, String),
}

pub(super) fn run(command: MailCommand, settings: &Settings) -> Result<(), CommandFailure> {
    match command {
        MailCommand::Key(arguments) => make_key(&arguments, settings),
        MailCommand::Record { json } => print_configured_record(settings, json),
    }
}

fn make_key(arguments: &KeyArguments, settings: &Settings) -> Result<(), CommandFailure> {
    let KeyArguments { out, selector, ed25519, json } = arguments;
    let used = settings.mail.as_ref().and_then(|mail| mail.dkim.as_ref());
    if let Some(used) = used.filter(|used| used.selector == *selector && used.key.exists()) {
        return Err(MailCommandFailure::SelectorInUse(selector.clone(), used.key.display().to_string()).into());
    }
    if out.exists() {
        return Err(MailCommandFailure::Exists(out.display().to_string()).into());
    }
    let kind = if *ed25519 { KeyKind::Ed25519 } else { KeyKind::Rsa };
    let pem = generate_dkim_key(kind).map_err(MailCommandFailure::Generate)?;
    write_key(out, &pem)?;
    let key = DkimKey::read(out)?;
    let path = out.canonicalize().unwrap_or_else(|_| out.clone()).display().to_string();
    let domain = settings.mail.as_ref().map(|mail| mail.from.email().domain());
    let record = PrintedRecord { selector, domain, record: key.record(), key: &path };
    record.print(*json);
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
fn write_key(path: &Path, pem: &str) -> Result<(), MailCommandFailure> {
    let failure = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => MailCommandFailure::Exists(path.display().to_string()),
        _ => MailCommandFailure::Write(path.display().to_string(), error),
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut temporary = NamedTempFile::new_in(folder).map_err(failure)?;
    temporary.write_all(pem.as_bytes()).map_err(failure)?;
    temporary.as_file().sync_all().map_err(failure)?;
    temporary.persist_noclobber(path).map_err(|refused| failure(refused.error))?;
    Ok(())
}

fn print_configured_record(settings: &Settings, as_json: bool) -> Result<(), CommandFailure> {
    let missing = |name, reason: &str| InvalidSettings::new(name, reason);
    let mail = settings.mail.as_ref().ok_or_else(|| missing("smtp_url", "it is not set, and all mail needs it"))?;
    let dkim = mail.dkim.as_ref();
    let dkim = dkim.ok_or_else(|| missing("dkim_key", "it is not set; `porchlight mail key` makes a key"))?;
    let (key, path) = (DkimKey::read(&dkim.key)?, dkim.key.display().to_string());
    let domain = Some(mail.from.email().domain());
    PrintedRecord { selector: &dkim.selector, domain, record: key.record(), key: &path }.print(as_json);
    Ok(())
}

/// A record in every form that DNS providers ask for.
struct PrintedRecord<'a> {
    selector: &'a DkimSelector,
    /// `None`: not set yet.
    domain: Option<&'a str>,
    record: &'a DkimRecord,
    /// The file with the private key.
    key: &'a str,
}

impl PrintedRecord<'_> {
    fn print(&self, as_json: bool) {
        let Self { selector, domain, record, key } = self;
        let (name, absolute_name) = match domain {
            Some(domain) => {
                let name = selector.record_name(domain);
                (name.clone(), name + ".")
            }
            None => (selector.relative_record_name(), selector.relative_record_name()),
        };
        let (value, zone_file) = (record.to_string(), record.zone_file_lines(&absolute_name));
        if as_json {
            return print_json(&json!({
                "name": name, "type": "TXT", "value": value, "zone_file": zone_file,
                "selector": selector.as_str(), "algorithm": record.kind.as_str(), "key": key,
            }));
        }
        print_line(&format!(
            "The DNS record for the key in {key}, for the form of a DNS provider:\n\n\
             Type:  TXT\nName:  {name}\nValue: {value}\n\n\
             And the same record for a zone file:\n\n{zone_file}"
        ));
    }
}
