//! What makers still have to do before their site is complete, in order: the start, `check` and the dashboard show it. And whether
//! the database belongs to the app of the site.

use super::releases::NewestImage;
use crate::config::Settings;
use crate::domain::network::BaseUrl;
use crate::domain::releases::Releases;
use crate::site::{Content, SampleText, SiteFacts, SiteFailure};
use crate::store::{Store, StoreFailure};

/// Why a command must not write to the database.
#[derive(Debug, thiserror::Error)]
pub enum AppMismatch {
    #[error(transparent)]
    Site(#[from] SiteFailure),
    #[error(transparent)]
    Store(#[from] StoreFailure),
    #[error("{0}")]
    OtherApp(String),
}

/// Checks that the database belongs to the app of the site, if it belongs to one.
pub async fn check_app(store: &Store, settings: &Settings) -> Result<(), AppMismatch> {
    let Some(recorded) = store.app_name().await? else { return Ok(()) };
    let SiteFacts { name, .. } = SiteFacts::read(&Content::from_settings(settings)?)?;
    if name == recorded {
        return Ok(());
    }
    let shown = |path: &Option<std::path::PathBuf>| {
        path.as_ref().map_or_else(|| "none".to_owned(), |path| path.display().to_string())
    };
    let (file, site_dir) = (shown(&settings.file), shown(&settings.site_dir));
    Err(AppMismatch::OtherApp(format!(
        "the database belongs to {recorded}, and these settings (file: {file}, `site_dir`: {site_dir}) are for {name}. Run this in \
         the folder with the settings of {recorded}, or name their file with `--config`. If the app has a new name, run \
         `porchlight site rename`"
    )))
}

/// As [`check_app`], and records the app of a site with a folder of its own as that of the database, if it belongs to none.
pub async fn claim_database(store: &Store, settings: &Settings) -> Result<(), AppMismatch> {
    check_app(store, settings).await?;
    let facts = SiteFacts::read(&Content::from_settings(settings)?)?;
    if !facts.is_built_in() {
        store.record_app_name(&facts.name).await?;
    }
    Ok(())
}

/// Whether people can join the waiting list of the site, or are on one that it leaves out. If the database cannot tell, they are:
/// the privacy page must not leave out what is stored.
pub async fn keeps_waitlist(store: &Store, content: &Content) -> bool {
    let is_left_out = SiteFacts::read(content).is_ok_and(|facts| !facts.waitlist);
    !is_left_out || store.people_on_waitlist().await.map_or(true, |people| people > 0)
}

/// How a disk image is published by a command. The desk has a page for it.
pub const PUBLISH_COMMAND: &str = "with `porchlight release publish FILE.dmg --version 1.0.0`";

/// Returns one sentence for each step.
pub fn setup_steps(
    facts: &SiteFacts,
    sample_texts: &[SampleText],
    newest_image: &NewestImage,
    releases: &Releases,
    base_url: &BaseUrl,
    forwards_messages: bool,
) -> Vec<String> {
    let is_sample = facts.is_built_in().then_some(
        "The site is that of a sample app. Make your own with `porchlight new FOLDER --name \"My App\"`, and set `site_dir` to \
         that folder.",
    );
    let site = sample_texts_step(sample_texts).or_else(|| is_sample.map(str::to_owned));
    let image = match newest_image {
        _ if releases.newest().is_some() => None,
        NewestImage::External(_) => None,
        NewestImage::Preview(_) => {
            Some(format!("Downloads get a sample disk image. Publish your own {PUBLISH_COMMAND}."))
        }
        NewestImage::Published(_) => Some(format!(
            "No disk image has been published, so downloads are answered with 503. Publish one {PUBLISH_COMMAND}, or set \
             `download_url`."
        )),
    };
    let rest = [address_step(base_url), (!forwards_messages).then_some(MAIL_STEP)];
    [site, image].into_iter().chain(rest.map(|step| step.map(str::to_owned))).flatten().collect()
}

/// What to do about the public URL.
pub fn address_step(base_url: &BaseUrl) -> Option<&'static str> {
    if base_url.is_loopback() {
        Some("This is a local preview. To go live, set `base_url` to the public URL, and `acme_email` for https.")
    } else if !base_url.is_https() {
        Some("Visitors' data is not encrypted. Set `acme_email` or `tls_cert`, or put an https proxy in front.")
    } else {
        None
    }
}

/// What to do if contact messages are not forwarded.
pub const MAIL_STEP: &str =
    "Contact messages are stored and not mailed to anybody. Set `smtp_url`, `mail_from` and `contact_to`.";

/// Warns about the database of a public site until its first record: an embedded database looks like that when its disk is
/// not mounted. A database that cannot be read is reported elsewhere.
pub async fn empty_database_warning(store: &Store, base_url: &BaseUrl) -> Option<&'static str> {
    let is_suspect = !base_url.is_loopback() && store.is_empty().await.unwrap_or_default();
    is_suspect.then_some(
        "The database is empty. If this site had visitors before, its disk is not mounted, or `data_dir` or `database_url` is \
         wrong; stop the service then, before it collects data in two places.",
    )
}

/// What to do about texts of a new site, if any are left.
pub fn sample_texts_step(texts: &[SampleText]) -> Option<String> {
    (!texts.is_empty()).then(|| format!("The site has texts of a new site. Change {}.", places(texts)))
}

/// Such as "site.toml (lines 6, 8), pages/about.md (line 13)".
fn places(texts: &[SampleText]) -> String {
    let of_file = |texts: &[SampleText]| {
        let lines: Vec<_> = texts.iter().map(|text| text.line.to_string()).collect();
        format!("{} ({} {})", texts[0].file, if lines.len() == 1 { "line" } else { "lines" }, lines.join(", "))
    };
    texts.chunk_by(|text, next| text.file == next.file).map(of_file).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::Content;

    fn steps(base_url: &str, change: impl FnOnce(&mut SiteFacts), forwards_messages: bool) -> Vec<String> {
        steps_with(&[], base_url, change, forwards_messages)
    }

    fn steps_with(
        sample_texts: &[SampleText],
        base_url: &str,
        change: impl FnOnce(&mut SiteFacts),
        forwards_messages: bool,
    ) -> Vec<String> {
        let mut facts = SiteFacts::read(&Content::default()).unwrap();
        change(&mut facts);
        let base_url = BaseUrl::parse(base_url).unwrap();
        let newest_image = NewestImage::choose(None, &base_url, &facts.name);
        setup_steps(&facts, sample_texts, &newest_image, &Releases::default(), &base_url, forwards_messages)
    }

    #[track_caller]
    fn assert_starts(steps: &[String], expected: &[&str]) {
        assert_eq!(steps.len(), expected.len(), "{steps:?}");
        for (step, expected) in steps.iter().zip(expected) {
            assert!(step.starts_with(expected), "{step}");
        }
    }

    #[test]
    fn a_preview_needs_a_site_an_image_an_address_and_mail() {
        let preview = steps("http://127.0.0.1:8080", |_| {}, false);
        assert_starts(&preview, &["The site is that of a sample", "Downloads get", "This is a local", "Contact"]);
    }

    #[test]
    fn in_public_only_what_is_missing_is_named() {
        let own = |facts: &mut SiteFacts| facts.name = "Tea".to_owned();
        assert_starts(&steps("https://tea.example", own, true), &["No disk image has been published"]);
        assert_starts(&steps("http://tea.example", own, true), &["No disk image", "Visitors' data"]);
        assert_starts(&steps("https://tea.example", |_| {}, true), &["The site is that of a sample", "No disk image"]);
    }

    #[test]
    fn texts_of_a_new_site_are_named_wherever_it_runs() {
        let sample = |file: &str, line| SampleText { file: file.to_owned(), line, text: "Say".to_owned() };
        let samples = [sample("site.toml", 6), sample("site.toml", 8), sample("pages/about.md", 13)];
        let steps = steps_with(&samples, "https://tea.example", |facts| facts.name = "Tea".to_owned(), true);
        let change = "The site has texts of a new site. Change site.toml (lines 6, 8), pages/about.md (line 13).";
        assert_starts(&steps, &[change, "No disk image"]);
    }
}
