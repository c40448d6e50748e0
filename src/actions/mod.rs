//! The rules of the service, one use case per file, and the state they share. Layer 2, called by the JSON API, MCP,
//! the forms and the commands.
//!
//! An action takes validated values and returns a plain value or a failure. It knows neither HTTP nor SQL; where a
//! statement enforces a rule, the doc comment of the action names it.

mod alerts;
mod backup_folder;
mod certificate_copy;
mod count_buffer;
mod create_backup;
mod disk_space;
mod image_store;
mod kept_backups;
mod mail_links;
mod ops_summary;
mod order_certificate;
mod prune;
mod publish_release;
mod readiness;
mod record_bounce;
mod release_catalog;
mod restore;
mod send_letter;
mod send_outbox;
mod setup_steps;
mod signups;
mod statistics;

use uuid::{NoContext, Uuid};

use crate::clock::Clock;
use crate::domain::time::Timestamp;
use crate::store::{Store, StoreFailure, Writer};
use crate::tls::CertificateStatus;

pub use alerts::{Alerts, confirmations_in_words};
pub use certificate_copy::delete_certificate_copy;
pub use count_buffer::CountBuffer;
pub use create_backup::{BackupFailure, CreatedBackup, create_backup};
pub use disk_space::{DiskSpace, FREE_UP_SPACE, nearest_folder};
pub use image_store::{ImageFailure, ImageStore, NewestImage, latest_path};
pub use kept_backups::{LastBackup, MAKE_A_BACKUP, delete_old_backups, rotated_backup_folder};
pub use mail_links::{
    can_unsubscribe, confirm_opt_in, confirmation_link, decline_opt_in, ensure_unsubscribe_tokens, unsubscribe,
};
pub use ops_summary::{CachedSummary, OpsSummary, ops_summary, recent_summary};
pub use order_certificate::CertificateOrders;
pub use prune::Pruner;
pub use publish_release::{ImageSource, NewRelease, PublishFailure, ReleaseStore, publish_release};
pub use readiness::{ReadinessCheck, image_problem, readiness};
pub use record_bounce::{BounceOutcome, UnchangedReason, record_bounce};
pub use release_catalog::ReleaseCatalog;
pub use restore::{RestoreFailure, Restored, restore};
pub use send_letter::{LetterFailure, LetterSender, LetterStep, compose_copy, new_bounce_tag};
pub use send_outbox::{ConfirmationTexts, OutboxSender, SendStep, send_contact};
pub use setup_steps::{MAIL_STEP, address_step, setup_steps};
pub use signups::{StartedDownload, import_people, join_waitlist, start_download};
pub use statistics::{StatisticsRange, statistics};

/// What the actions of a running service need. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Service {
    pub store: Store,
    /// A separate pool for the dashboard and the metrics, so that they never take a connection from requests.
    pub ops_pool: Store,
    pub writer: Writer,
    pub clock: Clock,
    pub newest_image: NewestImage,
    pub catalog: ReleaseCatalog,
    /// `None`: the service speaks plain HTTP.
    pub certificate: Option<CertificateStatus>,
    pub count_buffer: CountBuffer,
    pub cached_summary: CachedSummary,
    /// Whether an opt-in counts only after the person has confirmed it by mail.
    pub confirm_updates: bool,
    /// Whether a mail server is configured to which contact messages are forwarded.
    pub forwards_messages: bool,
}

/// Why an action failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The request is valid and may be repeated shortly.
    #[error("{0}")]
    Unavailable(String),
    /// There is no release to download.
    #[error("no disk image has been published yet")]
    NothingPublished,
    /// A bug; repeating the request is unlikely to help.
    #[error("{0}")]
    Internal(String),
}

impl From<StoreFailure> for Failure {
    fn from(failure: StoreFailure) -> Self {
        match failure {
            // Whatever the database refuses, it may accept once the makers have corrected it.
            StoreFailure::Unavailable(_)
            | StoreFailure::Conflict(_)
            | StoreFailure::Unusable(_)
            | StoreFailure::Rejected(_)
            | StoreFailure::Damaged(_) => Self::Unavailable(failure.to_string()),
            StoreFailure::InvalidData(_) => Self::Internal(failure.to_string()),
        }
    }
}

/// Returns a version 7 UUID for the time `at`, so that ids sort by time.
fn new_id(at: Timestamp) -> Uuid {
    let seconds = u64::try_from(at.unix_seconds()).unwrap_or_default();
    let nanos = u32::try_from(at.unix_millis().rem_euclid(1000)).unwrap_or_default() * 1_000_000;
    Uuid::new_v7(uuid::Timestamp::from_unix(NoContext, seconds, nanos))
}

/// Returns bytes that cannot be guessed.
fn random_bytes<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::Unavailable(format!("the system's random generator failed: {error}")))?;
    Ok(bytes)
}
