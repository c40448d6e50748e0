//! The parameters of a request, in its query: each at most once, and no unknown one.

use std::fmt::Display;

use url::form_urlencoded;

use super::problem::{DeskError, DeskProblem};
use crate::actions::NewRelease;
use crate::domain::limits::MAX_NAMED_MEMBER_CHARS;
use crate::domain::parse::Invalid;
use crate::domain::releases::{BuildNumber, Channel, MacosVersion, Notes, Reason, RolloutDays, Signature, Version};
use crate::domain::text::excerpt;

/// What is published, without its image.
pub(super) fn new_release(version: Version, query: Option<&str>) -> Result<NewRelease, DeskProblem> {
    let mut release = plain_release(version);
    read(query, |name, value| parse(name, describe(&mut release, name, value)))?;
    Ok(release)
}

/// A release of which only the version is known.
pub(in crate::web::desk) fn plain_release(version: Version) -> NewRelease {
    NewRelease {
        version,
        notes: Notes::default(),
        build: None,
        signature: None,
        minimum_macos: None,
        channel: Channel::stable(),
        critical: false,
        phased: RolloutDays::default(),
        force: false,
    }
}

/// Sets what a parameter or a field of this name says of a release. A parameter is one line of this. Returns whether there is one
/// of that name.
pub(in crate::web::desk) fn describe(release: &mut NewRelease, name: &str, value: &str) -> Result<bool, Invalid> {
    match name {
        "build" => release.build = Some(BuildNumber::parse(value)?),
        "ed_signature" => release.signature = Some(Signature::parse(value)?),
        "minimum_macos" => release.minimum_macos = Some(MacosVersion::parse(value)?),
        "channel" => release.channel = Channel::parse(value)?,
        "critical" => release.critical = yes_or_no(value)?,
        "phased" => release.phased = RolloutDays::parse(value)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn yes_or_no(value: &str) -> Result<bool, Invalid> {
    match value {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(Invalid::new("write yes or no")),
    }
}

/// Why a release is withdrawn, if the request says so.
pub(super) fn reason(query: Option<&str>) -> Result<Option<Reason>, DeskProblem> {
    let mut reason = None;
    read(query, |name, value| {
        if name == "reason" {
            reason = Some(parse(name, Reason::parse(value))?);
        }
        Ok(name == "reason")
    })?;
    Ok(reason)
}

/// Refuses all parameters.
pub(super) fn none(query: Option<&str>) -> Result<(), DeskProblem> {
    read(query, |_, _| Ok(false))
}

pub(super) fn parse<T, E: Display>(name: &str, parsed: Result<T, E>) -> Result<T, DeskProblem> {
    parsed.map_err(|why| invalid(format!("`{name}` cannot be used: {why}.")))
}

/// `take` returns whether it knows a parameter. A plus sign stands for itself, because signatures in base64 have it.
fn read(query: Option<&str>, mut take: impl FnMut(&str, &str) -> Result<bool, DeskProblem>) -> Result<(), DeskProblem> {
    let query = query.unwrap_or_default().replace('+', "%2B");
    let mut seen = Vec::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let shown = excerpt(&name, MAX_NAMED_MEMBER_CHARS);
        if seen.contains(&name) {
            return Err(invalid(format!("`{shown}` is there twice.")));
        }
        if !take(&name, &value)? {
            return Err(invalid(format!("There is no parameter `{shown}` here.")));
        }
        seen.push(name);
    }
    Ok(())
}

fn invalid(detail: String) -> DeskProblem {
    DeskProblem::new(DeskError::INVALID_PARAMETER, detail)
}
