//! `porchlight release edit`, `withdraw` and `restore`

use std::path::{Path, PathBuf};

use clap::Args;

use crate::actions::{
    ChangeFailure, ImageStore, check_withdrawable, edit_release, restore_release, what_withdrawing_does,
    withdraw_release,
};
use crate::cli::activity::record;
use crate::cli::failure::{Failure, OrFail};
use crate::cli::terminal::{confirm, eprint_line};
use crate::clock::Clock;
use crate::config::Settings;
use crate::domain::desk::Change;
use crate::domain::releases::{
    BuildNumber, Channel, MacosVersion, Notes, PublishRejection, Reason, ReleaseEdit, RolloutDays, Signature, Version,
};
use crate::domain::time::Timestamp;
use crate::store::Store;

/// What is given when a release is published, and can be changed later.
#[derive(Args, Debug)]
pub(super) struct UpdateArguments {
    /// Markdown file with the release notes
    #[arg(long, value_name = "FILE")]
    pub notes: Option<PathBuf>,

    /// Build number of the app (`CFBundleVersion`), for Sparkle, if it differs from the version
    #[arg(long, value_name = "BUILD", value_parser = BuildNumber::parse)]
    pub build: Option<BuildNumber>,

    /// Signature printed by Sparkle's `sign_update`
    #[arg(long, value_name = "SIGNATURE", value_parser = Signature::parse)]
    pub ed_signature: Option<Signature>,

    /// Oldest macOS version that the app supports, such as 14.0 [default: that of site.toml]
    #[arg(long, value_name = "VERSION", value_parser = MacosVersion::parse)]
    pub minimum_macos: Option<MacosVersion>,

    /// Channel, such as beta, for apps that ask for it; stable is for everybody
    #[arg(long, value_name = "NAME", value_parser = Channel::parse)]
    pub channel: Option<Channel>,

    /// Days over which Sparkle spreads the release, counted from its date; 0 offers it to everybody at once
    #[arg(long, value_name = "DAYS", value_parser = RolloutDays::parse)]
    pub phased: Option<RolloutDays>,
}

#[derive(Args, Debug)]
pub(in crate::cli) struct EditArguments {
    /// Version to change
    #[arg(value_parser = Version::parse)]
    version: Version,

    #[command(flatten)]
    update: UpdateArguments,

    /// Have Sparkle urge people to install it, at once even if it is phased; --critical=no ends that
    #[arg(long, value_name = "yes|no", num_args = 0..=1, require_equals = true, default_missing_value = "yes", value_parser = yes_or_no)]
    critical: Option<bool>,

    /// Day or time of publication in UTC, such as 2026-11-15 or 2026-11-15T12:00:00Z
    #[arg(long, value_parser = date)]
    date: Option<Timestamp>,

    /// Change it even if Sparkle would not offer the release to everybody
    #[arg(long)]
    force: bool,
}

fn yes_or_no(text: &str) -> Result<bool, &'static str> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("write yes or no"),
    }
}

fn date(text: &str) -> Result<Timestamp, &'static str> {
    Timestamp::parse(text).ok_or("write a day as 2026-11-15, or a time as 2026-11-15T12:00:00Z")
}

pub(super) fn read_notes(path: &Path) -> Result<Notes, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
    let notes = text.and_then(|text| Notes::parse(&text).map_err(|why| why.to_string()));
    notes.or_fail(|why| format!("The notes in {} cannot be used: {why}.", path.display()))
}

pub(super) fn unknown(version: &Version) -> Failure {
    Failure::new(format!("There is no release {version}. `porchlight release list` lists all releases."))
}

/// A rule forbids it. `what` is what was not done, such as "published".
pub(super) fn refused(what: &str, why: &PublishRejection) -> Failure {
    let advice = if why.can_be_forced() { ", or add --force to do it anyway" } else { "" };
    Failure::new(format!("Nothing was {what}: {why}{advice}."))
}

fn failed(failure: ChangeFailure) -> Failure {
    match failure {
        ChangeFailure::Unknown(version) => unknown(&version),
        ChangeFailure::Rejected(why) => refused("changed", &why),
        other => Failure::new(other),
    }
}

impl EditArguments {
    pub(super) async fn run(self, store: &Store) -> Result<(), Failure> {
        let edit = ReleaseEdit {
            notes: self.update.notes.as_deref().map(read_notes).transpose()?,
            build: self.update.build,
            signature: self.update.ed_signature,
            minimum_macos: self.update.minimum_macos,
            channel: self.update.channel,
            critical: self.critical,
            phased: self.update.phased,
            published: self.date,
        };
        if edit == ReleaseEdit::default() {
            let sentence = "Nothing was changed: say what to change, such as --notes notes.md.";
            return Err(Failure::new(sentence).with_exit_code(2));
        }
        edit_release(store, &self.version, &edit, self.force, Clock::System.now()).await.map_err(failed)?;
        tell(store, &self.version, "changed", Change::EditedRelease).await
    }
}

pub(super) async fn withdraw(
    store: &Store,
    version: Version,
    reason: Option<Reason>,
    yes: bool,
) -> Result<(), Failure> {
    let releases = store.releases().await?;
    let release = check_withdrawable(&releases, &version).map_err(failed)?;
    let question = format!("Withdraw {version}? {}", what_withdrawing_does(&releases, release).join(" "));
    confirm(&question, yes, "Nothing was withdrawn.")?;
    withdraw_release(store, &version, reason, Clock::System.now()).await.map_err(failed)?;
    tell(store, &version, "withdrawn", Change::WithdrewRelease).await
}

pub(super) async fn restore(settings: &Settings, store: &Store, version: Version, force: bool) -> Result<(), Failure> {
    let images = ImageStore::open(&settings.images, Clock::System)?;
    restore_release(store, &images, &version, force).await.map_err(failed)?;
    tell(store, &version, "offered again", Change::RestoredRelease).await
}

/// Records what was done and says it, and which release the public gets now.
async fn tell(store: &Store, version: &Version, done: &str, change: fn(Version) -> Change) -> Result<(), Failure> {
    record(store, change(version.clone())).await;
    eprint_line(&match store.releases().await?.newest() {
        Some(newest) => format!("{version} is {done}; the newest release is {}.", newest.version),
        None => format!("{version} is {done}; there is no release to download."),
    });
    Ok(())
}
