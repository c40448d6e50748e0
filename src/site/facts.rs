//! What the pages say: the facts about the app, from `site.toml`, and what the settings promise.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toml::Spanned;

use super::content::{Content, SiteFailure};
use super::language::Language;
use super::price::{CurrencyOutsideTable, Price};
use super::values::{NavFacts, day, language, macos_version, notice, web_url};
use crate::config::Settings;
use crate::domain::colour::Colour;
use crate::domain::text::{line_at, name_nearest_field};
use crate::domain::time::Timestamp;

const FILE: &str = "site.toml";

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SiteFacts {
    pub name: String,
    /// Of the pages, forms and mails.
    #[serde(default, deserialize_with = "language", skip_serializing)]
    pub language: Language,
    pub tagline: String,
    pub summary: String,
    pub maker: String,
    pub maker_country: Option<String>,
    /// What the app runs on. Made from `minimum_macos` unless it is written.
    #[serde(default)]
    pub system: String,
    /// The oldest macOS of releases that name none.
    #[serde(default, deserialize_with = "macos_version")]
    pub minimum_macos: Option<String>,
    /// What a person needs besides the system.
    pub needs: Option<String>,
    /// What the app itself does with data.
    pub app_privacy: Option<String>,
    /// What `og.png` shows.
    pub og_image_alt: Option<String>,
    #[serde(default, skip_serializing)]
    pub(super) price: Price,
    #[serde(default, skip_serializing, rename = "currency")]
    _currency: CurrencyOutsideTable,
    /// The page of the app in the Mac App Store.
    #[serde(default, deserialize_with = "web_url")]
    pub app_store_url: Option<String>,
    /// A line above all pages, for a day on which something is badly broken.
    #[serde(default, deserialize_with = "notice")]
    pub notice: Option<String>,
    /// Whether people can join a waiting list.
    #[serde(default = "yes")]
    pub waitlist: bool,
    pub category: String,
    /// What the licence allows, in one line.
    pub licence: String,
    pub licence_name: Option<String>,
    #[serde(default, deserialize_with = "web_url")]
    pub licence_url: Option<String>,
    #[serde(default, deserialize_with = "web_url")]
    pub source_url: Option<String>,
    /// The names of other programs that the app works with.
    #[serde(default)]
    pub works_with: Vec<String>,
    pub signature: Option<AppleSignature>,
    pub recommend_when: Vec<String>,
    pub not_for: Vec<String>,
    /// What to do the first time. Made from `signature` unless it is written.
    #[serde(default)]
    pub first_open: Vec<String>,
    pub mcp_name: String,
    pub crawlers: Vec<String>,
    /// The day on which `security.txt` expires.
    #[serde(default, deserialize_with = "day")]
    security_txt_expires: Option<String>,
    #[serde(default, skip_serializing)]
    pub(super) nav: NavFacts,
    #[serde(default, skip_serializing)]
    pub(super) look: LookFacts,
    /// Old paths, and what they lead to.
    #[serde(default, skip_serializing)]
    pub(super) redirects: BTreeMap<String, String>,
    /// The whole file, to name the lines of faults.
    #[serde(skip)]
    text: String,
}

/// What to do the first time, with an app that Apple has not notarised. Of one that it has, the first step is enough.
const FIRST_OPEN: [&str; 4] = [
    "Open the disk image, drag the app to Applications, and open it.",
    "If macOS refuses, close the message and keep the app.",
    "Open System Settings, then Privacy & Security.",
    "Beside the line that says the app was blocked, choose Open Anyway, and confirm.",
];

/// `[look]`: the light colours, and those of `[look.dark]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LookFacts {
    pub accent: Option<Spanned<Colour>>,
    pub background: Option<Spanned<Colour>>,
    pub text: Option<Spanned<Colour>>,
    #[serde(default)]
    pub dark: DarkFacts,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DarkFacts {
    pub accent: Option<Spanned<Colour>>,
    pub background: Option<Spanned<Colour>>,
    pub text: Option<Spanned<Colour>>,
}

/// How long `security.txt` is valid after the commit of the program: less than a year, as RFC 9116 recommends.
const SECURITY_TXT_VALIDITY: Duration = Duration::from_hours(360 * 24);

/// How builds of the app are signed, which decides what macOS does at the first open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AppleSignature {
    Unsigned,
    /// With a Developer ID, but not notarised.
    Signed,
    Notarised,
}

impl SiteFacts {
    pub fn read(content: &Content) -> Result<Self, SiteFailure> {
        let text = content.text(FILE)?;
        let mut facts: Self = toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_at(&text, span.start));
            SiteFailure::fault(FILE, line, name_nearest_field(error.message()))
        })?;
        if facts.system.is_empty() {
            let minimum = facts.minimum_macos.as_ref();
            let minimum = minimum.ok_or_else(|| SiteFailure::fault(FILE, 1, "set system or minimum_macos"))?;
            facts.system = format!("macOS {} or later", minimum.trim_end_matches(".0"));
        }
        if facts.first_open.is_empty() {
            let steps = if facts.may_be_refused() { &FIRST_OPEN } else { &FIRST_OPEN[..1] };
            facts.first_open = steps.iter().copied().map(str::to_owned).collect();
        }
        Ok(Self { text, ..facts })
    }

    /// A fault in the line that names `name`.
    pub(super) fn fault(&self, name: &str, why: &str) -> SiteFailure {
        let (quoted, is_of_key) =
            (format!("\"{name}\""), |line: &str| line.split('=').next().is_some_and(|key| key.trim() == name));
        let line = self.text.lines().position(|line| line.contains(&quoted) || is_of_key(line));
        SiteFailure::fault(FILE, line.map_or(1, |before| before + 1), why)
    }

    /// A fault at a place in the file.
    pub(super) fn fault_at(&self, place: usize, why: &str) -> SiteFailure {
        SiteFailure::fault(FILE, line_at(&self.text, place), why)
    }

    /// Whether these are the facts of the app whose site is built in.
    pub fn is_built_in(&self) -> bool {
        Self::read(&Content::default()).is_ok_and(|built_in| built_in.name == self.name)
    }

    pub fn price_words(&self) -> String {
        self.price.words()
    }

    /// Facts that programs get by these names, and only if they are set.
    pub fn only_if_set(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let facts = [
            ("buy_url", self.price.buy_url()),
            ("app_store_url", self.app_store_url.as_deref()),
            ("notice", self.notice.as_deref()),
        ];
        facts.into_iter().filter_map(|(name, fact)| Some((name, fact?)))
    }

    /// Whether macOS may refuse to open the app the first time.
    pub fn may_be_refused(&self) -> bool {
        self.signature != Some(AppleSignature::Notarised)
    }

    /// The name of the licence, if it is set, and what it allows.
    pub fn licence_words(&self) -> String {
        let name = self.licence_name.as_ref().map(|name| format!("{name}. ")).unwrap_or_default();
        name + &self.licence
    }

    /// When `security.txt` expires: on the day that `site.toml` names, or 360 days after that of the program's commit.
    pub fn security_txt_expires(&self) -> Timestamp {
        let commit = env!("PORCHLIGHT_COMMIT_TIME").parse::<i64>().unwrap_or_default();
        let commit = Timestamp::from_unix_millis(commit.saturating_mul(1000));
        let of_commit = || commit.after(SECURITY_TXT_VALIDITY).date();
        let day = self.security_txt_expires.clone().unwrap_or_else(of_commit);
        Timestamp::parse(&day).unwrap_or(commit)
    }

    pub const fn signature_words(&self) -> &'static str {
        match self.signature {
            None => "Builds may not be signed with Apple yet, so macOS may refuse the first open.",
            Some(AppleSignature::Unsigned) => "Builds are not signed with Apple, so macOS refuses the first open.",
            Some(AppleSignature::Signed) => {
                "Builds are signed with an Apple Developer ID but not notarised, so macOS refuses the first open."
            }
            Some(AppleSignature::Notarised) => "Builds are signed with an Apple Developer ID and notarised.",
        }
    }

    /// The variable `app` of the templates: every fact, and the sentences made from some.
    pub(super) fn template_variable(&self) -> Value {
        let mut variable = json!(self);
        variable["price_words"] = self.price_words().into();
        variable["price_in_sentence"] = self.price_words().replace("Free", "free").into();
        variable["licence_words"] = self.licence_words().into();
        variable["signature_words"] = self.signature_words().into();
        variable["may_be_refused"] = self.may_be_refused().into();
        variable["buy_url"] = self.price.buy_url().into();
        variable
    }
}

const fn yes() -> bool {
    true
}

/// What the settings promise to visitors, also the variable `policies` of the templates. The texts of the site are made from
/// it, so that they stay true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each one stands for a setting")]
pub struct Policies {
    /// Whether AI may be trained on the site.
    pub ai_train: bool,
    /// Whether an opt-in counts only after the person has confirmed it by mail.
    pub confirm_updates: bool,
    /// Whether letters that are sent can be read on the site.
    pub letters_archive: bool,
    /// How long a contact message is kept after it was forwarded, such as "24 months". `None`: until the person asks for
    /// erasure. What is never forwarded is never deleted.
    pub keep_messages: Option<String>,
    /// Whether contact messages are forwarded by mail.
    pub forwards_messages: bool,
    /// Whether letters that come back are recorded.
    pub records_bounces: bool,
    /// Whether addresses of a waiting list are kept: people can join one, or are still on one that the site leaves out.
    pub keeps_waitlist: bool,
    /// The host that downloads are redirected to, if images are in a bucket.
    #[serde(skip)]
    pub bucket_host: Option<String>,
}

impl Policies {
    pub fn from_settings(settings: &Settings, keeps_waitlist: bool) -> Self {
        let mail = settings.mail.as_ref();
        Self {
            ai_train: settings.ai_train,
            confirm_updates: settings.confirm_updates,
            letters_archive: settings.letters_archive,
            keep_messages: mail.and(settings.keep_messages).map(|keep| keep.to_string()),
            forwards_messages: mail.is_some(),
            records_bounces: mail.is_some_and(|mail| mail.bounce_address.is_some()),
            keeps_waitlist,
            bucket_host: settings.images.redirect_host(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(added: &str) -> Result<SiteFacts, toml::de::Error> {
        let text = Content::default().text(FILE).unwrap();
        toml::from_str(&format!("{added}\n{}", text.replace("\nminimum_macos", "\n# minimum_macos")))
    }

    #[test]
    fn facts_that_are_not_set_are_not_invented() {
        let facts = read("").unwrap();
        let variable = facts.template_variable();
        for name in ["maker_country", "licence_name", "licence_url", "source_url", "signature"] {
            assert_eq!(variable[name], Value::Null, "{name}");
        }
        assert!(facts.works_with.is_empty());
    }

    #[test]
    fn a_fact_of_the_wrong_form_is_refused() {
        for (added, why) in [
            ("licence_url = \"example.com\"", "http"),
            ("source_url = \"javascript:alert(1)\"", "http"),
            ("signature = \"maybe\"", "notarised"),
            ("minimum_macos = \"Sonoma\"", "it is not a version of macOS such as 14.0"),
            ("security_txt_expires = \"soon\"", "write a day as 2026-11-15"),
        ] {
            let error = read(added).unwrap_err().message().to_owned();
            assert!(error.contains(why), "{added}: {error}");
        }
    }
}
