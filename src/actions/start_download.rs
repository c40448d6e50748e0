//! Starts a download of the app.

use super::{Failure, Service, new_id};
use crate::domain::confirmation::OptInRequest;
use crate::domain::signup::DownloadOrder;
use crate::store::{SignupKind, SignupRecord};

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
/// `confirm_updates` the opt-in is pending until the person confirms it ([`confirm_opt_in`](super::confirm_opt_in())). `already` is
/// exact even across instances, because the row of a person keeps the ids of the first download and the first join. Both
/// rules are in `store/signups.rs`. If there is no release to download, nothing is recorded.
pub async fn start_download(service: &Service, order: DownloadOrder) -> Result<StartedDownload, Failure> {
    if service.newest_image.requires_release() && service.catalog.known()?.newest().is_none() {
        return Err(Failure::NothingPublished);
    }
    let at = service.clock.now();
    let opt_in = match (order.updates, service.confirm_updates) {
        (false, _) => OptInRequest::None,
        (true, false) => OptInRequest::Immediate,
        (true, true) => OptInRequest::Pending,
    };
    let known = service
        .writer
        .record_signup(SignupRecord {
            id: new_id(at),
            kind: SignupKind::Download { opt_in },
            email: order.email,
            source: order.source,
            via: order.via,
            at,
        })
        .await?;
    let url = service.newest_image.url().to_owned();
    Ok(StartedDownload { url, already: known.downloaded || known.joined })
}
