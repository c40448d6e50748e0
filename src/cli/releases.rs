//! `porchlight release`

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::backup::progress_bar;
use super::failure::{Failure, OrFail};
use super::run::{Access, with_store};
use super::terminal::{ListPrinter, confirm, eprint_line, print_record, sanitize_line, terminal_width, truncate};
use crate::actions::{ImageSource, ImageStore, ImageStream, NewRelease, ReleaseStore, publish_release, release_record};
use crate::clock::Clock;
use crate::config::Settings;
use crate::domain::network::parse_web_url;
use crate::domain::releases::{BuildNumber, MacosVersion, Notes, Release, Releases, Signature, Version};
use crate::domain::sha256::Sha256;
use crate::site::{Content, SiteFacts};
use crate::store::Store;

#[derive(Debug, Subcommand)]
pub(super) enum ReleaseCommand {
    /// Publish a disk image as the newest release, effective immediately
    #[command(before_help = PUBLISH_EXAMPLES)]
    Publish(Box<PublishArguments>),
    /// List all releases, highest version first
    #[command(before_help = "Example:\n  porchlight release list --json")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one release
    #[command(before_help = "Example:\n  porchlight release show 1.4.0")]
    Show {
        /// Version to show [default: the newest]
        #[arg(value_parser = Version::parse)]
        version: Option<Version>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Stop offering a version; its number cannot be used again
    #[command(before_help = "Example:\n  porchlight release withdraw 1.4.0")]
    Withdraw {
        /// Version to withdraw
        #[arg(value_parser = Version::parse)]
        version: Version,
        /// Do not ask for confirmation
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
pub(super) struct PublishArguments {
    /// Disk image, or - for standard input; it is copied to `releases_dir`, or to the bucket of `releases_url`
    #[arg(required_unless_present = "url", conflicts_with = "url")]
    file: Option<PathBuf>,

    /// Version of the app, such as 1.4.0
    #[arg(long, value_parser = Version::parse)]
    version: Version,

    /// Markdown file with the release notes
    #[arg(long, value_name = "FILE")]
    notes: Option<PathBuf>,

    /// Build number of the app (`CFBundleVersion`), for Sparkle, if it differs from the version
    #[arg(long, value_name = "BUILD", value_parser = BuildNumber::parse)]
    build: Option<BuildNumber>,

    /// Signature printed by Sparkle's `sign_update`
    #[arg(long, value_name = "SIGNATURE", value_parser = Signature::parse)]
    ed_signature: Option<Signature>,

    /// Oldest macOS version that the app supports, such as 14.0 [default: that of site.toml]
    #[arg(long, value_name = "VERSION", value_parser = MacosVersion::parse)]
    minimum_macos: Option<MacosVersion>,

    /// Publish a prerelease; the public download does not change
    #[arg(long)]
    prerelease: bool,

    /// Publish even if the version is not higher than the newest; the newest stays the newest
    #[arg(long)]
    force: bool,

    /// URL of an image on another host; downloads are redirected there
    #[arg(long, requires_all = ["length", "sha256"], value_parser = parse_web_url)]
    url: Option<String>,

    /// Length of that image in bytes
    #[arg(long, requires = "url", value_parser = clap::value_parser!(u64).range(1..=i64::MAX as u64))]
    length: Option<u64>,

    /// SHA-256 of that image, 64 hexadecimal digits
    #[arg(long, requires = "url", value_parser = sha256)]
    sha256: Option<Sha256>,
}

fn sha256(text: &str) -> Result<Sha256, &'static str> {
    Sha256::from_hex(text).ok_or("it is not 64 hexadecimal digits")
}

const NO_RELEASES: &str = "Nothing has been published yet. `porchlight release publish --help` shows how.";

fn unknown(version: &Version) -> Failure {
    Failure::new(format!("There is no release {version}. `porchlight release list` lists all releases."))
}

pub(super) fn run(command: ReleaseCommand, settings: &Settings) -> Result<(), Failure> {
    let access = match command {
        ReleaseCommand::List { .. } | ReleaseCommand::Show { .. } => Access::Read,
        ReleaseCommand::Withdraw { .. } => Access::Write,
        ReleaseCommand::Publish(_) => Access::Create,
    };
    with_store(settings, access, async |store| match command {
        ReleaseCommand::Publish(arguments) => arguments.run(settings, store).await,
        ReleaseCommand::List { json } => {
            list(&store.releases().await?, json);
            Ok(())
        }
        ReleaseCommand::Show { version, json } => show(&store.releases().await?, version, json),
        ReleaseCommand::Withdraw { version, yes } => withdraw(store, version, yes).await,
    })
}

impl PublishArguments {
    async fn run(self, settings: &Settings, store: &Store) -> Result<(), Failure> {
        let content = Content::from_settings(settings)?;
        let facts = SiteFacts::read(&content)?;
        let images = ImageStore::open(&settings.images, Clock::System)?;
        let data_dir = &settings.data_dir;
        let release_store = ReleaseStore { store, images: &images, data_dir, app: &facts.name };
        let (bar, mut progress) = progress_bar();
        let progress = move |done, total| progress("copying", done, total);
        let mut interrupt = signal(SignalKind::interrupt())?;
        let (new_release, image) = self.new_release()?;
        let published = tokio::select! {
            published = publish_release(&release_store, new_release, image, Clock::System.now(), progress) => {
                published.map_err(Failure::new)
            }
            _ = interrupt.recv() => Err(Failure::new(
                "Interrupted. If `porchlight release list` does not show the release, run the command again.",
            )),
        };
        bar.finish_and_clear();
        let release = published?;
        let newest = store.releases().await?.newest().map(|newest| newest.version.clone());
        eprint_line(&match newest {
            Some(newest) if newest == release.version => {
                format!("{} is published and is now the newest release.", release.file)
            }
            Some(newest) => format!("{} is published; the newest release is still {newest}.", release.file),
            None => format!("{} is published as a prerelease.", release.file),
        });
        eprint_line(&format!("  length   {} bytes", release.length));
        eprint_line(&format!("  SHA-256  {}", release.sha256.hex()));
        Ok(())
    }

    fn new_release(self) -> Result<(NewRelease, ImageSource), Failure> {
        let notes = match self.notes {
            None => Notes::default(),
            Some(path) => {
                let text = std::fs::read_to_string(&path).map_err(|error| error.to_string());
                let notes = text.and_then(|text| Notes::parse(&text).map_err(|why| why.to_string()));
                notes.or_fail(|why| format!("The notes in {} cannot be used: {why}.", path.display()))?
            }
        };
        let image = match (self.file, self.url, self.length, self.sha256) {
            (None, Some(url), Some(length), Some(sha256)) => ImageSource::External { url, length, sha256 },
            (Some(file), ..) if file == Path::new("-") => ImageSource::Stream(ImageStream {
                bytes: Box::new(std::io::stdin()),
                length: None,
                stop: CancellationToken::new(),
            }),
            (file, ..) => ImageSource::File(file.unwrap_or_default()),
        };
        let new_release = NewRelease {
            version: self.version,
            notes,
            build: self.build,
            signature: self.ed_signature,
            minimum_macos: self.minimum_macos,
            prerelease: self.prerelease,
            force: self.force,
        };
        Ok((new_release, image))
    }
}

fn list(releases: &Releases, as_json: bool) {
    for version in releases.unreadable() {
        let version = sanitize_line(version);
        eprint_line(&format!("The release {version} in the database is damaged, and is not offered."));
    }
    let mut list = ListPrinter::new(as_json, None);
    for release in releases.iter() {
        let version = release.version.to_string();
        let (date, state) = (release.published.date(), state(release, releases));
        let line = format!("{version:<16} {date}  {:>14} bytes  {state}", release.length);
        list.push(&release_record(release, releases), &truncate(line.trim_end(), terminal_width()));
    }
    list.finish(NO_RELEASES);
}

fn show(releases: &Releases, version: Option<Version>, as_json: bool) -> Result<(), Failure> {
    let release = match version {
        Some(version) => releases.find_version(&version).ok_or_else(|| unknown(&version))?,
        None => releases.newest().ok_or_else(|| Failure::new(NO_RELEASES))?,
    };
    let json = release_record(release, releases);
    let mut text = Vec::new();
    for (name, value) in json.as_object().into_iter().flatten().filter(|(name, _)| *name != "notes") {
        match value {
            Value::Null => {}
            Value::String(value) => text.push(format!("{name:<14} {value}")),
            other => text.push(format!("{name:<14} {other}")),
        }
    }
    if !release.notes.as_str().is_empty() {
        text.push(format!("\n{}", release.notes.as_str()));
    }
    print_record(as_json, &json, &text.join("\n"));
    Ok(())
}

async fn withdraw(store: &Store, version: Version, yes: bool) -> Result<(), Failure> {
    match store.releases().await?.find_version(&version) {
        None => return Err(unknown(&version)),
        Some(Release { withdrawn: Some(at), .. }) => {
            return Err(Failure::new(format!("{version} was already withdrawn on {}.", at.date())));
        }
        Some(_) => {}
    }
    let question = format!("Withdraw {version}? It can no longer be downloaded, and its number cannot be used again.");
    confirm(&question, yes, "Nothing was withdrawn.")?;
    let withdrawn = store.withdraw_release(&version, Clock::System.now()).await;
    if !withdrawn.or_fail(|failure| failure.sentence("Nothing was withdrawn"))? {
        return Err(unknown(&version));
    }
    let newest = store.releases().await?.newest().map(|newest| newest.version.to_string());
    eprint_line(&match newest {
        Some(newest) => format!("{version} is withdrawn; the newest release is {newest}."),
        None => format!("{version} is withdrawn; there is no release to download."),
    });
    Ok(())
}

fn state(release: &Release, releases: &Releases) -> &'static str {
    match release {
        Release { withdrawn: Some(_), .. } => "withdrawn",
        Release { prerelease: true, .. } => "prerelease",
        release if releases.newest() == Some(release) => "newest",
        _ => "",
    }
}
