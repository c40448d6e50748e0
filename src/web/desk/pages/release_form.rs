//! What a form says of a release: the same as the parameters of an upload with a token, by the same names.

use http::StatusCode;
use serde_json::{Value, json};

use super::form::Form;
use crate::actions::NewRelease;
use crate::domain::parse::Invalid;
use crate::domain::releases::{Notes, Release, ReleaseEdit, Version};
use crate::domain::time::Timestamp;
use crate::web::desk::api::parameters::{describe, plain_release};
use crate::web::desk::api::problem::DeskProblem;

/// Why a form is refused.
#[derive(Debug)]
pub(super) struct Refused {
    pub status: StatusCode,
    pub text: String,
    /// The name of the field that cannot be used.
    pub field: Option<&'static str>,
}

/// The fields besides version, notes and date, and what sentences call them.
const FIELDS: [(&str, &str); 6] = [
    ("build", "build number"),
    ("ed_signature", "EdDSA signature"),
    ("minimum_macos", "minimum macOS"),
    ("channel", "channel"),
    ("critical", "choice whether it is critical"),
    ("phased", "rollout"),
];

impl Refused {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { status: StatusCode::UNPROCESSABLE_ENTITY, text: text.into(), field: None }
    }

    fn field(field: &'static str, text: impl Into<String>) -> Self {
        Self { field: Some(field), ..Self::new(text) }
    }

    fn invalid(field: &'static str, called: &str, why: &Invalid) -> Self {
        Self::field(field, format!("The {called} cannot be used: {why}."))
    }

    pub(super) fn without_file() -> Self {
        Self::field("file", "Choose a disk image: the file that ends in .dmg.")
    }
}

impl From<DeskProblem> for Refused {
    fn from(problem: DeskProblem) -> Self {
        let (status, text) = problem.into_parts();
        Self { status, text, field: None }
    }
}

pub(super) fn version(form: &Form) -> Result<Version, Refused> {
    Version::parse(form.text("version").trim()).map_err(|why| Refused::invalid("version", "version", &why))
}

/// A field that is empty says nothing.
pub(super) fn new_release(version: Version, form: &Form) -> Result<NewRelease, Refused> {
    let mut release = plain_release(version);
    for (name, called) in FIELDS {
        let value = form.text(name).trim();
        if !value.is_empty() {
            describe(&mut release, name, value).map_err(|why| Refused::invalid(name, called, &why))?;
        }
    }
    let unusable = |why: Invalid| Refused::field("notes", format!("The notes cannot be used: {why}."));
    release.notes = Notes::parse(form.text("notes")).map_err(unusable)?;
    Ok(release)
}

/// What of the release is not as the form says.
pub(super) fn edit(release: &Release, form: &Form) -> Result<ReleaseEdit, Refused> {
    let wanted = new_release(release.version.clone(), form)?;
    let has_channel = !form.text("channel").trim().is_empty();
    let edit = ReleaseEdit {
        notes: changed(wanted.notes, &release.notes),
        build: given(wanted.build, release.build.as_ref(), "build")?,
        signature: given(wanted.signature, release.signature.as_ref(), "ed_signature")?,
        minimum_macos: given(wanted.minimum_macos, release.minimum_macos.as_ref(), "minimum_macos")?,
        channel: changed(wanted.channel, &release.channel).filter(|_| has_channel),
        critical: changed(wanted.critical, &release.critical),
        phased: changed(wanted.phased, &release.phased),
        published: date(release, form.text("date"))?,
    };
    if edit == ReleaseEdit::default() {
        return Err(Refused::new("Nothing was changed: the form says what the release has already."));
    }
    Ok(edit)
}

/// What was typed to publish a release that is published: as a form that changes it, if it would change something.
pub(super) fn as_edit(release: &Release, form: &Form) -> Option<Form> {
    let Value::Object(stored) = stored(release) else { return None };
    let both = Form::of_pairs(stored.into_iter().map(|(name, value)| match form.text(&name) {
        typed if typed.trim().is_empty() => (name, value.as_str().unwrap_or_default().to_owned()),
        typed => (name, typed.to_owned()),
    }));
    edit(release, &both).is_ok().then_some(both)
}

fn changed<T: PartialEq>(wanted: T, present: &T) -> Option<T> {
    (wanted != *present).then_some(wanted)
}

/// A value that can be given and replaced, and not taken away.
fn given<T: PartialEq>(wanted: Option<T>, present: Option<&T>, field: &'static str) -> Result<Option<T>, Refused> {
    if wanted.is_none() && present.is_some() {
        let called = FIELDS.iter().find(|(name, _)| *name == field).map_or(field, |(_, called)| called);
        return Err(Refused::field(field, format!("Nothing was changed: the {called} cannot be taken away any more.")));
    }
    Ok(wanted.filter(|wanted| Some(wanted) != present))
}

/// The day that the form shows already leaves the time of day as it is.
fn date(release: &Release, text: &str) -> Result<Option<Timestamp>, Refused> {
    let text = text.trim();
    if text.is_empty() || text == release.published.date() {
        return Ok(None);
    }
    let unusable = || Refused::field("date", "The date cannot be used: write a day as 2026-11-15.");
    Timestamp::parse(text).map(Some).ok_or_else(unusable)
}

/// What was typed.
pub(super) fn typed(form: &Form) -> Value {
    let text = |name| (name, form.text(name));
    let names = ["version", "build", "ed_signature", "minimum_macos", "channel", "critical", "phased", "date", "notes"];
    names.map(text).into_iter().map(|(name, text)| (name.to_owned(), Value::from(text))).collect()
}

/// What the release has.
pub(super) fn stored(release: &Release) -> Value {
    json!({
        "build": release.build.as_ref().map_or("", |build| build.as_str()),
        "ed_signature": release.signature.as_ref().map_or("", |signature| signature.as_str()),
        "minimum_macos": release.minimum_macos.as_ref().map_or("", |version| version.as_str()),
        "channel": release.channel.as_str(),
        "critical": if release.critical { "yes" } else { "" },
        "phased": release.phased.days().to_string(),
        "date": release.published.date(),
        "notes": release.notes.as_str(),
    })
}
