//! Signups: downloads, joins of the deprecated waitlist, and people from a list.

use super::failure::Failure;
use super::random::new_id;
use super::service::Service;
use crate::domain::mail::EmailAddress;
use crate::domain::people::Person;
use crate::domain::signups::{
    DownloadRequest, KnownBefore, OptInRequest, SignupKind, SignupRecord, Via, WaitlistRequest, Wording,
};
use crate::domain::text::Source;
use crate::domain::time::Timestamp;
use crate::store::{Imported, ImportedPerson, Store};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartedDownload {
    /// The URL of the newest image.
    pub url: String,
    /// Whether the address had downloaded the app or joined the waitlist before.
    pub already: bool,
}

/// Records the download, and the opt-in if `updates` is set, and returns the URL of the newest image.
///
/// `updates` turns the letter on and never off: without it, the opt-in of an earlier download stays. With the setting
/// `confirm_updates` the opt-in is pending until the person confirms it ([`confirm_opt_in`](super::letters::confirm_opt_in)). `already` is
/// exact even across instances, because the row of a person keeps the ids of the first download and the first join. Both
/// rules are in `store/signups.rs`. If there is no release to download, nothing is recorded.
pub async fn start_download(service: &Service, request: DownloadRequest) -> Result<StartedDownload, Failure> {
    if service.newest_image.requires_release() && service.catalog.known()?.newest().is_none() {
        return Err(Failure::NothingPublished);
    }
    let opt_in = match (request.updates, service.confirm_updates) {
        (false, _) => OptInRequest::None,
        (true, false) => OptInRequest::Immediate,
        (true, true) => OptInRequest::Pending,
    };
    let DownloadRequest { email, source, via, wording, .. } = request;
    let known = record(service, SignupKind::Download { opt_in }, email, source, via, wording).await?;
    let url = service.newest_image.url().to_owned();
    Ok(StartedDownload { url, already: known.downloaded || known.joined })
}

/// Adds the address to the list and returns `already`: whether it was on the list before. A download alone does not
/// count as joining.
///
/// `already` is exact even across instances, because the row of a person keeps the id of the first join; see
/// `store/signups.rs`.
pub async fn join_waitlist(service: &Service, request: WaitlistRequest) -> Result<bool, Failure> {
    let WaitlistRequest { email, source, via } = request;
    Ok(record(service, SignupKind::Join, email, source, via, Wording::BUILT_IN).await?.joined)
}

async fn record(
    service: &Service,
    kind: SignupKind,
    email: EmailAddress,
    source: Option<Source>,
    via: Via,
    wording: Wording,
) -> Result<KnownBefore, Failure> {
    let at = service.clock.now();
    Ok(service.writer.record_signup(SignupRecord { id: new_id(at), kind, email, source, via, wording, at }).await?)
}

/// Adds the people who are not stored yet, all or none. People who are stored already stay
/// unchanged, except that those suppressed in the list become suppressed.
pub async fn import_people(store: &Store, people: &[Person], at: Timestamp) -> Result<Imported, Failure> {
    let with_ids: Vec<_> = people.iter().map(with_ids).collect();
    Ok(store.import(&with_ids, at).await?)
}

fn with_ids(person: &Person) -> ImportedPerson {
    let seen = person.first_seen;
    ImportedPerson {
        downloads: (0..person.downloads).map(|_| new_id(seen)).collect(),
        join: person.waitlist.then(|| new_id(seen)),
        opt_in: person.opt_in.as_ref().map(|opt_in| new_id(opt_in.at)),
        person: person.clone(),
    }
}
