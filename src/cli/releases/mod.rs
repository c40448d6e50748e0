//! `porchlight release`

mod change;
mod list;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use self::change::{EditArguments, UpdateArguments, read_notes, refused};
use super::activity::record;
use super::backup::progress_bar;
use super::failure::Failure;
use super::run::{Access, with_store};
use super::terminal::eprint_line;
use crate::actions::{
    ImageSource, ImageStore, ImageStream, NewRelease, PublishFailure, ReleaseStore, publish_release, same_image_note,
};
use crate::clock::Clock;
use crate::config::Settings;
use crate::domain::desk::Change;
use crate::domain::network::parse_web_url;
use crate::domain::releases::{Channel, Reason, Release, Releases, Version};
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
    /// Change what was given when a version was published, except its image
    #[command(before_help = EDIT_EXAMPLES)]
    Edit(Box<EditArguments>),
    /// Stop offering a version; no other image can have that number
    #[command(before_help = "Example:\n  porchlight release withdraw 1.4.0 --reason \"It could lose settings\"")]
    Withdraw {
        /// Version to withdraw
        #[arg(value_parser = Version::parse)]
        version: Version,
        /// Why, in one line; shown on the page of releases
        #[arg(long, value_name = "TEXT", value_parser = Reason::parse)]
        reason: Option<Reason>,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Offer a withdrawn version again, if its image is still the same
    #[command(before_help = "Example:\n  porchlight release restore 1.4.0")]
    Restore {
        /// Version to put back
        #[arg(value_parser = Version::parse)]
        version: Version,
        /// Put it back even if it is not higher than the newest, or if Sparkle would not offer it to everybody
        #[arg(long)]
        force: bool,
    },
}

const EDIT_EXAMPLES: &str = "\
Examples:
  porchlight release edit 1.4.0 --notes notes.md
  porchlight release edit 2.0.0 --channel stable";

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

    #[command(flatten)]
    update: UpdateArguments,

    /// Have Sparkle urge people to install it, at once even if it is phased
    #[arg(long)]
    critical: bool,

    /// Publish in the channel beta; the public download does not change
    #[arg(long, conflicts_with = "channel")]
    prerelease: bool,

    /// Publish even if the version is not higher than the newest, which stays the newest, or if Sparkle would not offer it to
    /// everybody
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

pub(super) fn run(command: ReleaseCommand, settings: &Settings) -> Result<(), Failure> {
    let access = match command {
        ReleaseCommand::List { .. } | ReleaseCommand::Show { .. } => Access::Read,
        ReleaseCommand::Edit(_) | ReleaseCommand::Withdraw { .. } | ReleaseCommand::Restore { .. } => Access::Write,
        ReleaseCommand::Publish(_) => Access::Create,
    };
    with_store(settings, access, async |store| match command {
        ReleaseCommand::Publish(arguments) => arguments.run(settings, store).await,
        ReleaseCommand::List { json } => {
            list::list(&store.releases().await?, json);
            Ok(())
        }
        ReleaseCommand::Show { version, json } => list::show(&store.releases().await?, version, json),
        ReleaseCommand::Edit(arguments) => arguments.run(store).await,
        ReleaseCommand::Withdraw { version, reason, yes } => change::withdraw(store, version, reason, yes).await,
        ReleaseCommand::Restore { version, force } => change::restore(settings, store, version, force).await,
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
                published.map_err(|failure| match failure {
                    PublishFailure::Rejected(why) => refused("published", &why),
                    other => Failure::new(other),
                })
            }
            _ = interrupt.recv() => Err(Failure::new(
                "Interrupted. If `porchlight release list` does not show the release, run the command again.",
            )),
        };
        bar.finish_and_clear();
        let release = published?;
        record(store, Change::PublishedRelease(release.version.clone())).await;
        let releases = store.releases().await?;
        eprint_line(&outcome(&release, &releases));
        eprint_line(&format!("  length   {} bytes", release.length));
        eprint_line(&format!("  SHA-256  {}", release.sha256.hex()));
        if let Some(note) = same_image_note(&release, &releases) {
            eprint_line(&note);
        }
        if release.build.is_some() && release.signature.is_none() {
            let version = &release.version;
            eprint_line(
                "It has a build number and no signature, which Sparkle needs as well. To add the one of sign_update:",
            );
            eprint_line(&format!("  porchlight release edit {version} --ed-signature …"));
        }
        Ok(())
    }

    fn new_release(self) -> Result<(NewRelease, ImageSource), Failure> {
        let notes = self.update.notes.as_deref().map(read_notes).transpose()?.unwrap_or_default();
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
            build: self.update.build,
            signature: self.update.ed_signature,
            minimum_macos: self.update.minimum_macos,
            channel: if self.prerelease {
                Channel::beta()
            } else {
                self.update.channel.unwrap_or_else(Channel::stable)
            },
            critical: self.critical,
            phased: self.update.phased.unwrap_or_default(),
            force: self.force,
        };
        Ok((new_release, image))
    }
}

/// What was published, and which release the public gets now.
fn outcome(release: &Release, releases: &Releases) -> String {
    let newest = releases.newest();
    if newest.is_some_and(|newest| newest.version == release.version) {
        return format!("{} is published and is now the newest release.", release.file);
    }
    let place =
        if release.channel.is_stable() { String::new() } else { format!(" in the channel {}", release.channel) };
    match newest {
        Some(newest) => {
            format!("{} is published{place}; the newest release is still {}.", release.file, newest.version)
        }
        None => format!("{} is published{place}.", release.file),
    }
}
