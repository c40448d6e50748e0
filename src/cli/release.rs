//! `porchlight release`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use super::terminal::{cut, width};
use super::{Access, CommandFailure, at_work, confirm, open_store, say, say_json, tell};
use crate::actions::{
    Image, Publication, PublishFailure, ReleaseStore, WithdrawFailure, publish_release, withdraw_release,
};
use crate::clock::Clock;
use crate::config::Settings;
use crate::domain::release::{Notes, Release, Releases, Signature};
use crate::domain::sha256::Sha256;
use crate::domain::time::Timestamp;
use crate::domain::version::{Build, SystemVersion, Version};
use crate::site::{Content, SiteFacts};
use crate::store::Store;

#[derive(Debug, Subcommand)]
pub(super) enum ReleaseCommand {
    /// Publish a disk image: at once, to everybody, as the newest
    #[command(before_help = PUBLISH_EXAMPLES)]
    Publish(Box<Publish>),
    /// List what has been published, the highest version first
    #[command(before_help = "Example:\n  porchlight release list --json")]
    List {
        /// As JSON, for programs
        #[arg(long)]
        json: bool,
    },
    /// Show one release, or the newest
    #[command(before_help = "Example:\n  porchlight release show 1.4.0")]
    Show {
        #[arg(value_parser = version)]
        version: Option<Version>,
        /// As JSON, for programs
        #[arg(long)]
        json: bool,
    },
    /// Hand a version out no longer; its number is never used again
    #[command(before_help = "Example:\n  porchlight release withdraw 1.4.0")]
    Withdraw {
        #[arg(value_parser = version)]
        version: Version,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

const PUBLISH_EXAMPLES: &str = "\
Examples:
  porchlight release publish Troupe.dmg --version 1.4.0 --notes notes.md
  porchlight release publish --url https://files.example/Troupe-1.4.0.dmg --length 48213504 \\
      --sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 --version 1.4.0";

#[derive(Args, Debug)]
pub(super) struct Publish {
    /// The disk image; it is copied to `releases_dir`
    #[arg(required_unless_present = "url", conflicts_with = "url")]
    file: Option<PathBuf>,

    /// The version of the app, such as 1.4.0
    #[arg(long, value_parser = version)]
    version: Version,

    /// What is new, as Markdown
    #[arg(long, value_name = "FILE")]
    notes: Option<PathBuf>,

    /// The build number of the app (`CFBundleVersion`), for Sparkle, if it is not the version
    #[arg(long, value_name = "BUILD", value_parser = |text: &str| Build::parse(text))]
    build: Option<Build>,

    /// The signature that Sparkle's `sign_update` printed
    #[arg(long, value_name = "SIGNATURE", value_parser = |text: &str| Signature::parse(text))]
    ed_signature: Option<Signature>,

    /// The oldest macOS it runs on, such as 14.0
    #[arg(long, value_name = "VERSION", value_parser = |text: &str| SystemVersion::parse(text))]
    minimum_macos: Option<SystemVersion>,

    /// For those who want it early; the public does not get it
    #[arg(long)]
    prerelease: bool,

    /// Publish it even if it is not newer, which does not make it the newest
    #[arg(long)]
    force: bool,

    /// Where the image is, if another host has it; downloads then lead there
    #[arg(long, requires_all = ["length", "sha256"], value_parser = web_address)]
    url: Option<String>,

    /// How many bytes that image has
    #[arg(long, requires = "url", value_parser = clap::value_parser!(u64).range(1..=i64::MAX as u64))]
    length: Option<u64>,

    /// The SHA-256 of that image, 64 hexadecimal digits
    #[arg(long, requires = "url", value_parser = digest)]
    sha256: Option<Sha256>,
}

fn version(text: &str) -> Result<Version, String> {
    Version::parse(text).map_err(|why| why.to_string())
}

fn web_address(text: &str) -> Result<String, String> {
    crate::config::web_address(text).ok_or_else(|| "it is not an http address".to_owned())
}

fn digest(text: &str) -> Result<Sha256, String> {
    Sha256::from_hex(text).ok_or_else(|| "it is not 64 hexadecimal digits".to_owned())
}

/// What a command about releases could not do, in one sentence.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReleaseFailure {
    #[error(transparent)]
    Publish(#[from] PublishFailure),
    #[error(transparent)]
    Withdraw(#[from] WithdrawFailure),
    #[error("Stopped. Unless `porchlight release list` shows it, nothing was published: run the command again.")]
    Interrupted,
    #[error("The notes in {0} cannot be used: {1}.")]
    Notes(String, String),
    #[error("There is no release {0}. `porchlight release list` shows what there is.")]
    Unknown(Version),
    #[error("{0} was withdrawn on {1} already.")]
    Withdrawn(Version, String),
    #[error("Nothing has been published yet. `porchlight release publish --help` shows how.")]
    Nothing,
}

impl ReleaseCommand {
    const fn access(&self) -> Access {
        match self {
            Self::List { .. } | Self::Show { .. } => Access::Read,
            Self::Withdraw { .. } => Access::Amend,
            Self::Publish(_) => Access::Begin,
        }
    }
}

pub(super) fn run(command: ReleaseCommand, settings: &Settings) -> Result<(), CommandFailure> {
    at_work(async {
        let store = open_store(settings, command.access()).await?;
        let done = match command {
            ReleaseCommand::Publish(publish) => publish.run(settings, &store).await,
            ReleaseCommand::List { json } => {
                list(&store.releases().await?, json);
                Ok(())
            }
            ReleaseCommand::Show { version, json } => show(&store.releases().await?, version, json),
            ReleaseCommand::Withdraw { version, yes } => withdraw(&store, version, yes).await,
        };
        store.close().await;
        done
    })
}

impl Publish {
    async fn run(self, settings: &Settings, store: &Store) -> Result<(), CommandFailure> {
        let content = Content::from_settings(settings)?;
        let facts = SiteFacts::read(&content)?;
        let place = ReleaseStore { store, folder: &settings.releases_dir, app: &facts.name };
        let bar = ProgressBar::new(0).with_style(bar_style());
        let progress = {
            let bar = bar.clone();
            move |done, all| {
                bar.set_length(all);
                bar.set_position(done);
            }
        };
        let mut interrupt = signal(SignalKind::interrupt())?;
        let published = tokio::select! {
            published = publish_release(&place, self.publication()?, Clock::System.now(), progress) => {
                published.map_err(ReleaseFailure::from)
            }
            _ = interrupt.recv() => Err(ReleaseFailure::Interrupted),
        };
        bar.finish_and_clear();
        let release = published?;
        let newest = store.releases().await?.newest().map(|newest| newest.version.clone());
        tell(&match newest {
            Some(newest) if newest == release.version => format!("{} is the newest now.", release.file),
            Some(newest) => format!("{} is published; the newest is still {newest}.", release.file),
            None => format!("{} is published for those who want it early.", release.file),
        });
        tell(&format!("  length   {} bytes", release.length));
        tell(&format!("  SHA-256  {}", release.sha256.hex()));
        Ok(())
    }

    fn publication(self) -> Result<Publication, ReleaseFailure> {
        let notes = match self.notes {
            None => Notes::default(),
            Some(path) => {
                let unusable = |why: String| ReleaseFailure::Notes(path.display().to_string(), why);
                let text = std::fs::read_to_string(&path).map_err(|error| unusable(error.to_string()))?;
                Notes::parse(&text).map_err(|why| unusable(why.to_string()))?
            }
        };
        let image = match (self.file, self.url, self.length, self.sha256) {
            (None, Some(url), Some(length), Some(sha256)) => Image::Elsewhere { url, length, sha256 },
            (file, ..) => Image::File(file.unwrap_or_default()),
        };
        Ok(Publication {
            version: self.version,
            image,
            notes,
            build: self.build,
            signature: self.ed_signature,
            minimum_macos: self.minimum_macos,
            prerelease: self.prerelease,
            force: self.force,
        })
    }
}

fn bar_style() -> ProgressStyle {
    ProgressStyle::with_template("  copying {bar:32} {decimal_bytes} of {decimal_total_bytes}, {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn list(releases: &Releases, as_json: bool) {
    if as_json {
        let all: Value = releases.iter().map(|release| described(release, releases)).collect();
        return say_json(&all);
    }
    if releases.iter().next().is_none() {
        tell(&ReleaseFailure::Nothing.to_string());
    }
    for release in releases.iter() {
        let version = release.version.to_string();
        let (date, state) = (release.published.date(), state(release, releases));
        let line = format!("{version:<16} {date}  {:>14} bytes  {state}", release.length);
        say(&cut(line.trim_end(), width()));
    }
}

fn show(releases: &Releases, version: Option<Version>, as_json: bool) -> Result<(), CommandFailure> {
    let release = match version {
        Some(version) => releases.with_version(&version).ok_or(ReleaseFailure::Unknown(version))?,
        None => releases.newest().ok_or(ReleaseFailure::Nothing)?,
    };
    let described = described(release, releases);
    if as_json {
        say_json(&described);
        return Ok(());
    }
    for (name, value) in described.as_object().into_iter().flatten().filter(|(name, _)| *name != "notes") {
        match value {
            Value::Null => {}
            Value::String(text) => say(&format!("{name:<14} {text}")),
            other => say(&format!("{name:<14} {other}")),
        }
    }
    if !release.notes.as_str().is_empty() {
        say(&format!("\n{}", release.notes.as_str()));
    }
    Ok(())
}

async fn withdraw(store: &Store, version: Version, yes: bool) -> Result<(), CommandFailure> {
    match store.releases().await?.with_version(&version) {
        None => return Err(ReleaseFailure::Unknown(version).into()),
        Some(Release { withdrawn: Some(at), .. }) => {
            return Err(ReleaseFailure::Withdrawn(version, at.date()).into());
        }
        Some(_) => {}
    }
    let question = format!("Withdraw {version}? Nobody is handed it any more, and its number is never used again.");
    if !confirm(&question, yes)? {
        tell("Nothing was withdrawn.");
        return Ok(());
    }
    withdraw_release(store, &version, Clock::System.now()).await.map_err(ReleaseFailure::from)?;
    let newest = store.releases().await?.newest().map(|newest| newest.version.to_string());
    tell(&match newest {
        Some(newest) => format!("{version} is withdrawn; the newest is {newest}."),
        None => format!("{version} is withdrawn; nothing is left to download."),
    });
    Ok(())
}

fn state(release: &Release, releases: &Releases) -> &'static str {
    match release {
        Release { withdrawn: Some(_), .. } => "withdrawn",
        Release { prerelease: true, .. } => "early",
        release if releases.newest() == Some(release) => "newest",
        _ => "",
    }
}

fn described(release: &Release, releases: &Releases) -> Value {
    json!({
        "version": release.version.to_string(),
        "newest": releases.newest() == Some(release),
        "prerelease": release.prerelease,
        "published": release.published.rfc3339(),
        "withdrawn": release.withdrawn.map(Timestamp::rfc3339),
        "file": release.file,
        "url": release.elsewhere,
        "length": release.length,
        "sha256": release.sha256.hex(),
        "build": release.build.as_ref().map(Build::as_str),
        "minimum_macos": release.minimum_macos.as_ref().map(SystemVersion::as_str),
        "ed_signature": release.signature.as_ref().map(Signature::as_str),
        "notes": release.notes.as_str(),
    })
}
