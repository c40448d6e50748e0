//! Somebody downloads the app.

use super::{Failure, Service, new_id};
use crate::domain::signup::DownloadOrder;
use crate::store::{SignupKind, SignupRecord};

/// The way to the image, and whether this address had downloaded or joined the list before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartedDownload {
    pub url: String,
    pub already: bool,
}

/// Records the download, and the opt-in if there is one, then says where the newest image is.
///
/// # Errors
/// `NothingPublished`, without a trace, when there is nothing to download; `Unavailable` when it
/// cannot be recorded.
pub async fn start_download(service: &Service, order: DownloadOrder) -> Result<StartedDownload, Failure> {
    let at = service.clock.now();
    let before = service
        .writer
        .record_signup(SignupRecord {
            id: new_id(at),
            kind: SignupKind::Download { updates: order.updates, of_release: service.newest_image.requires_release() },
            email: order.email,
            source: order.source,
            via: order.via,
            at,
        })
        .await?
        .ok_or(Failure::NothingPublished)?;
    let url = service.newest_image.url().to_owned();
    Ok(StartedDownload { url, already: before.downloaded || before.joined })
}
