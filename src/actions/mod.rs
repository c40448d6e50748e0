//! The rules of the service, one use case per file, and the state they share. Layer 2, called by the JSON API, MCP,
//! the forms and the commands.
//!
//! An action takes validated values and returns a plain value or a failure. It knows neither HTTP nor SQL; where a
//! statement enforces a rule, the doc comment of the action names it.

mod alerts;
mod backup_folder;
mod certificate;
mod confirm_opt_in;
mod count_buffer;
mod create_backup;
mod disk_space;
mod failure;
mod image_store;
mod import_people;
mod join_waitlist;
mod kept_backups;
mod ops_summary;
mod order_certificate;
mod prune;
mod publish_release;
mod readiness;
mod record_bounce;
mod release_catalog;
mod restore;
mod send_contact;
mod send_letter;
mod send_outbox;
mod setup_steps;
mod start_download;
mod statistics;
mod suppress;
mod unsubscribe;
mod withdraw_release;

use uuid::{NoContext, Uuid};

use crate::clock::Clock;
use crate::domain::time::Timestamp;
use crate::store::{Store, Writer};

pub use alerts::{Alerts, confirmations_in_words};
pub use backup_folder::Progress;
pub use certificate::{CertificateStatus, delete_certificate_copy, is_renewal_overdue};
pub use confirm_opt_in::{confirm_opt_in, confirmation_link, decline_opt_in};
pub use count_buffer::CountBuffer;
pub use create_backup::{BackupFailure, CreatedBackup, create_backup};
pub use disk_space::{DiskSpace, FREE_UP_SPACE, nearest_folder};
pub use failure::Failure;
pub use image_store::{ImageFailure, ImageStore, NewestImage, latest_path};
pub use import_people::import_people;
pub use join_waitlist::join_waitlist;
pub use kept_backups::{DeletedBackups, LastBackup, MAKE_A_BACKUP, delete_old_backups, rotated_backup_folder};
pub use ops_summary::{CachedSummary, OpsSummary, ops_summary, recent_summary};
pub use order_certificate::{CertificateOrders, CertificateState};
pub use prune::Pruner;
pub use publish_release::{ImageSource, NewRelease, PublishFailure, ReleaseStore, publish_release};
pub use readiness::{ReadinessCheck, image_problem, readiness};
pub use record_bounce::{BounceOutcome, UnchangedReason, record_bounce};
pub use release_catalog::{CatalogWatcher, ReleaseCatalog};
pub use restore::{ManifestCheck, RestoreFailure, RestoreTarget, Restored, restore};
pub use send_contact::send_contact;
pub use send_letter::{LetterFailure, LetterSender, LetterStep, compose_copy, new_bounce_tag};
pub use send_outbox::{ConfirmationTexts, OutboxSender, SendStep};
pub use setup_steps::{MAIL_STEP, address_step, setup_steps};
pub use start_download::{StartedDownload, start_download};
pub use statistics::{StatisticsRange, statistics};
pub use suppress::{suppress, unsuppress};
pub use unsubscribe::{can_unsubscribe, ensure_unsubscribe_tokens, unsubscribe};
pub use withdraw_release::{WithdrawFailure, withdraw_release};

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
