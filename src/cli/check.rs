//! `porchlight check`: looks at everything the service depends on, and changes nothing.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Access, access, statvfs};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{CommandFailure, at_work, base_url, say};
use crate::actions::{Catalogue, NewestImage, missing_image};
use crate::config::{InvalidSettings, MailSettings, Settings};
use crate::domain::release::Releases;
use crate::mail::{Correspondent, Postmaster};
use crate::site::{Content, Facts, SiteFailure, Stationery};
use crate::store::{Database, Store, StoreFailure};
use crate::web;

/// Less room than this is told.
const LITTLE_ROOM: u64 = 1_000_000_000;
/// Whoever waits for a mail server at a terminal waits no longer.
const MAIL_WITHIN: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Good,
    /// Works, and could be better.
    Note,
    /// Does not work until somebody acts.
    Trouble,
}

/// What was found out about one thing.
#[derive(Debug)]
struct Finding {
    name: &'static str,
    state: State,
    words: String,
}

/// Something does not work.
#[derive(Debug, thiserror::Error)]
pub(super) enum CheckFailure {
    #[error("One thing has to be put right.")]
    One,
    #[error("{0} things have to be put right.")]
    Several(usize),
}

impl Finding {
    fn good(name: &'static str, words: impl Into<String>) -> Self {
        Self { name, state: State::Good, words: words.into() }
    }

    fn note(name: &'static str, words: impl Into<String>) -> Self {
        Self { name, state: State::Note, words: words.into() }
    }

    fn trouble(name: &'static str, words: impl Into<String>) -> Self {
        Self { name, state: State::Trouble, words: words.into() }
    }
}

pub(super) fn run(settings: Result<Settings, InvalidSettings>, as_json: bool) -> Result<(), CommandFailure> {
    at_work(async {
        let findings = match settings {
            Ok(settings) => look(&settings).await,
            Err(failure) => vec![Finding::trouble("settings", failure.to_string())],
        };
        if as_json {
            say(&format!("{:#}", described(&findings)));
        } else {
            for finding in &findings {
                say(&line(finding));
            }
        }
        match findings.iter().filter(|finding| finding.state == State::Trouble).count() {
            0 => Ok(()),
            1 => Err(CheckFailure::One.into()),
            count => Err(CheckFailure::Several(count).into()),
        }
    })
}

fn line(finding: &Finding) -> String {
    let mark = match finding.state {
        State::Good => '✓',
        State::Note => '·',
        State::Trouble => '✗',
    };
    format!("{mark} {:<9} {}", finding.name, finding.words)
}

fn described(findings: &[Finding]) -> Value {
    let state = |state| match state {
        State::Good => "ok",
        State::Note => "note",
        State::Trouble => "trouble",
    };
    json!({
        "ok": findings.iter().all(|finding| finding.state != State::Trouble),
        "checks": findings
            .iter()
            .map(|finding| json!({ "name": finding.name, "state": state(finding.state), "detail": finding.words }))
            .collect::<Value>(),
    })
}

async fn look(settings: &Settings) -> Vec<Finding> {
    let mut findings = vec![about_settings(settings)];
    let (finding, store) = about_database(settings).await;
    findings.push(finding);
    findings.extend(about_disks(settings));
    let releases = match &store {
        Some(store) => store.releases().await.unwrap_or_default(),
        None => Releases::default(),
    };
    match about_site(settings, &releases) {
        Ok((finding, newest_image)) => {
            findings.push(finding);
            findings.push(about_release(settings, store.clone(), &newest_image).await);
        }
        Err(failure) => findings.push(Finding::trouble("site", failure.to_string())),
    }
    if let Some(store) = store {
        store.close().await;
    }
    findings.extend(about_mail(settings).await);
    findings
}

fn about_settings(settings: &Settings) -> Finding {
    let base_url = base_url(settings);
    if base_url.is_loopback() {
        let words = format!("{base_url} is a local preview. Set `base_url` to the public address to go live.");
        return Finding::note("settings", words);
    }
    if !base_url.is_https() {
        let words =
            format!("{base_url} is not encrypted. Put a proxy that speaks https in front, and set `base_url` to it.");
        return Finding::note("settings", words);
    }
    Finding::good("settings", base_url.to_string())
}

/// The store only if it can be asked.
async fn about_database(settings: &Settings) -> (Finding, Option<Store>) {
    const NAME: &str = "database";
    let database = match Database::of(settings) {
        Ok(database) => database,
        Err(failure) => return (Finding::trouble(NAME, failure.to_string()), None),
    };
    if let Database::Sqlite(path) = &database
        && !path.exists()
    {
        return (not_made_yet(NAME, &database, path), None);
    }
    let store = match Store::open_for_callers(&database) {
        Ok(store) => store,
        Err(failure) => return (Finding::trouble(NAME, failure.to_string()), None),
    };
    match store.condition().await {
        Ok(condition) => {
            let schema =
                condition.schema.map_or_else(|| "no tables yet".to_owned(), |number| format!("schema {number}"));
            let mut notes = vec![format!("{database}, {schema}.")];
            if condition.migrations_to_come > 0 {
                notes.push("The next start brings it up to date.".to_owned());
            }
            if let Some(risk) = condition.risk {
                notes
                    .push(format!("The server has `{risk}` off: a power cut may lose what was confirmed. Turn it on."));
            }
            let finding = match notes.as_slice() {
                [_] => Finding::good(NAME, format!("{database}, {schema}, takes writes")),
                notes => Finding::note(NAME, notes.join(" ")),
            };
            if condition.schema.is_none() {
                store.close().await;
                return (finding, None);
            }
            (finding, Some(store))
        }
        Err(StoreFailure::Unusable(sentence)) => (Finding::trouble(NAME, format!("{database}: {sentence}")), None),
        Err(StoreFailure::Unavailable(why) | StoreFailure::Refused(why)) => {
            (Finding::trouble(NAME, format!("{database} cannot be used: {why}.")), None)
        }
        Err(damaged @ StoreFailure::Damaged(_)) => {
            (Finding::trouble(NAME, damaged.sentence(&format!("{database} cannot be used"))), None)
        }
    }
}

fn not_made_yet(name: &'static str, database: &Database, file: &Path) -> Finding {
    let folder = nearest_folder(file);
    if access(&folder, Access::WRITE_OK | Access::EXEC_OK).is_ok() {
        return Finding::note(name, format!("{database} is not there yet. The first start makes it."));
    }
    let words = format!("{database} cannot be made: {} may not be written to.", folder.display());
    Finding::trouble(name, words)
}

/// The folder itself, or the one above it in which it will be made.
fn nearest_folder(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/")).to_owned()
}

fn about_disks(settings: &Settings) -> Vec<Finding> {
    let (data, releases) = (nearest_folder(&settings.data_dir), nearest_folder(&settings.releases_dir));
    let device = |folder: &Path| folder.metadata().map(|about| about.dev()).ok();
    if device(&data) == device(&releases) {
        return vec![about_disk("disk", "`data_dir`", &data)];
    }
    vec![about_disk("disk", "`data_dir`", &data), about_disk("images", "`releases_dir`", &releases)]
}

fn about_disk(name: &'static str, setting: &str, folder: &Path) -> Finding {
    let about = match statvfs(folder) {
        Ok(about) => about,
        Err(why) => return Finding::note(name, format!("{} cannot be measured: {why}.", folder.display())),
    };
    let free = about.f_bavail.saturating_mul(about.f_frsize);
    #[expect(clippy::cast_precision_loss, reason = "one digit after the point is shown")]
    let words = format!("{:.1} GB are free for {setting} ({})", free as f64 / 1e9, folder.display());
    if free < LITTLE_ROOM {
        return Finding::note(name, format!("{words}. That is little: make room before it is full."));
    }
    Finding::good(name, words)
}

fn about_site(settings: &Settings, releases: &Releases) -> Result<(Finding, NewestImage), SiteFailure> {
    let content = Content::of(settings)?;
    let (facts, base_url) = (Facts::read(&content)?, base_url(settings));
    let newest_image = NewestImage::choose(settings.download_url.as_deref(), &base_url, &facts.name);
    let files = web::try_making(&content, &base_url, &newest_image, releases)?;
    Stationery::read(&content, base_url, settings.postal_address.as_deref().unwrap_or_default())?;
    let whose = settings.site_dir.as_deref().map_or_else(
        || "the one that comes along".to_owned(),
        |folder| format!("with the files of {}", folder.display()),
    );
    Ok((
        Finding::good("site", format!("{}, {whose}; all {files} pages and files can be made", facts.name)),
        newest_image,
    ))
}

async fn about_release(settings: &Settings, store: Option<Store>, newest_image: &NewestImage) -> Finding {
    const NAME: &str = "release";
    const PUBLISH: &str = "`porchlight release publish FILE.dmg --version 1.0.0` puts one up.";
    if let NewestImage::Elsewhere(url) = newest_image {
        return Finding::good(NAME, format!("downloads lead to {url}"));
    }
    let Some(store) = store else {
        return match newest_image {
            NewestImage::Preview(_) => Finding::note(NAME, format!("Downloads get a sample disk image. {PUBLISH}")),
            _ => Finding::trouble(NAME, format!("Downloads are answered with 503: no release is known. {PUBLISH}")),
        };
    };
    let catalogue = Catalogue::new(store, settings.releases_dir.clone());
    if let Err(failure) = catalogue.look().await {
        return Finding::trouble(NAME, format!("What has been published could not be read: {failure}."));
    }
    let missing = missing_image(&catalogue, newest_image).await;
    match (catalogue.known().newest(), missing) {
        (Some(release), None) => match &release.elsewhere {
            Some(url) => Finding::good(NAME, format!("{} is the newest, at {url}", release.version)),
            None => Finding::good(NAME, format!("{} is the newest, and can be read here", release.version)),
        },
        (Some(_), Some(missing)) => Finding::trouble(NAME, format!("Downloads fail: {missing}.")),
        (None, Some(missing)) => {
            Finding::trouble(NAME, format!("Downloads are answered with 503: {missing}. {PUBLISH}"))
        }
        (None, None) => Finding::note(NAME, format!("Downloads get a sample disk image. {PUBLISH}")),
    }
}

async fn about_mail(settings: &Settings) -> Vec<Finding> {
    let Some(mail) = &settings.mail else {
        let words = "Messages are stored, and not mailed to anybody. Set `smtp_url`.";
        return vec![Finding::note("mail", words)];
    };
    let (_, domain) = mail.from.email().key().rsplit_once('@').unwrap_or_default();
    let signing = format!(
        "Your mail server has to sign what it sends for {domain} (DKIM), and {domain} needs TXT records for SPF and DMARC. \
         This cannot be seen from here: docs/mail.md says how to make sure."
    );
    vec![about_mail_server(mail).await, Finding::note("sender", signing)]
}

/// Connects and logs in, and sends nothing.
async fn about_mail_server(mail: &MailSettings) -> Finding {
    const NAME: &str = "mail";
    if let Err(why) = Correspondent::new(&mail.contact_to) {
        return Finding::trouble(NAME, InvalidSettings::of("contact_to", why).to_string());
    }
    let postmaster = match Postmaster::new(mail.relay.clone(), &mail.from) {
        Ok(postmaster) => postmaster,
        Err(why) => return Finding::trouble(NAME, InvalidSettings::of("mail_from", why).to_string()),
    };
    let away = |why: &str| Finding::trouble(NAME, format!("{} cannot be used: {why}. Check `smtp_url`.", mail.relay));
    match timeout(MAIL_WITHIN, postmaster.connect()).await {
        Ok(Ok(connection)) => {
            connection.close().await;
            let login = if mail.relay.login().is_some() { "and lets us in" } else { "and asks for no password" };
            Finding::good(NAME, format!("{} answers {login}", mail.relay))
        }
        Ok(Err(trouble)) => away(&trouble.to_string()),
        Err(_) => away("it does not answer"),
    }
}
