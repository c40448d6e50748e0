//! The state that all actions of a running service share.

use super::letter_archive::LetterArchive;
use super::releases::{NewestImage, ReleaseCatalog};
use super::statistics::{CachedSummary, CachedTotals, CountBuffer};
use crate::clock::Clock;
use crate::store::{Store, Writer};
use crate::tls::CertificateStatus;

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
    pub letters: LetterArchive,
    /// `None`: the service speaks plain HTTP.
    pub certificate: Option<CertificateStatus>,
    pub count_buffer: CountBuffer,
    pub cached_summary: CachedSummary,
    pub cached_totals: CachedTotals,
    /// Whether an opt-in counts only after the person has confirmed it by mail.
    pub confirm_updates: bool,
    /// Whether the service makes backups in a bucket.
    pub backs_up: bool,
    /// Whether a mail server is configured to which contact messages are forwarded.
    pub forwards_messages: bool,
}
