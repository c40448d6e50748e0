//! Tells the makers by mail what needs attention, at most once a day.
//!
//! All instances together enqueue one mail, which then waits in the outbox. What is wrong is judged where `check`, `/readyz`
//! and the dashboard judge it.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use super::disk_space::{DiskSpace, FREE_UP_SPACE};
use super::readiness::{image_problem, outbox_problem};
use crate::actions::backup::BackupState;
use crate::actions::failure::Failure;
use crate::actions::random::new_id;
use crate::actions::releases::{NewestImage, ReleaseCatalog};
use crate::clock::Clock;
use crate::domain::limits::{CONFIRMATION_PERIOD, FORWARD_RETRY_PERIOD, MAX_CONFIRMATION_MAILS};
use crate::domain::network::BaseUrl;
use crate::domain::outbox::Trouble;
use crate::domain::text::{capitalised, plural_form, quantity};
use crate::domain::time::Timestamp;
use crate::mail::alert_texts;
use crate::store::{Backlog, MailKind, Store, StoreFailure};
use crate::tls::CertificateStatus;

/// The shortest time between two of these mails.
const PERIOD: Duration = Duration::from_hours(24);
/// A confirmation mail that waits for longer is reported.
const MAX_CONFIRMATION_DELAY: Duration = Duration::from_hours(24);

#[derive(Clone, Debug)]
pub struct Alerts {
    pub store: Store,
    /// Counts mails that wait, which may take longer than a request may.
    pub ops_pool: Store,
    pub catalog: ReleaseCatalog,
    pub newest_image: NewestImage,
    /// `None`: the service speaks plain HTTP.
    pub certificate: Option<CertificateStatus>,
    pub data_dir: PathBuf,
    /// `None`: images are in a bucket.
    pub releases_dir: Option<PathBuf>,
    /// Whether the service makes backups in a bucket.
    pub backs_up: bool,
    pub base_url: BaseUrl,
    /// The name of the app.
    pub app: String,
    /// The name of the machine: some things are wrong on one machine of several.
    pub machine: String,
    pub clock: Clock,
}

impl Alerts {
    /// Looks what needs attention, and enqueues a mail about it unless there was one within the last day. Returns how many
    /// things the mail is about.
    pub async fn step(&self) -> Result<usize, Failure> {
        let now = self.clock.now();
        let troubles = self.troubles(now).await;
        let (subject, text) = alert_texts(&self.app, self.base_url.as_str(), &self.machine, &troubles);
        if troubles.is_empty() || !self.store.enqueue_alert(new_id(now), (&subject, &text), now, PERIOD).await? {
            return Ok(0);
        }
        Ok(troubles.len())
    }

    /// What cannot be looked at is left out until the next time.
    async fn troubles(&self, now: Timestamp) -> Vec<Trouble> {
        let mut troubles: Vec<_> = self.certificate_trouble(now).into_iter().collect();
        troubles.extend(self.disk_troubles());
        troubles.extend(looked_at(self.image_trouble().await));
        troubles.extend(looked_at(self.waiting_mail_trouble(now).await));
        troubles.extend(looked_at(self.failed_mail_trouble().await));
        troubles.extend(looked_at(self.confirmation_trouble(now).await));
        troubles.extend(looked_at(self.backup_trouble(now).await));
        troubles
    }

    fn certificate_trouble(&self, now: Timestamp) -> Option<Trouble> {
        let problem = self.certificate.as_ref()?.lasting_problem(now)?;
        Some(Trouble {
            about: "Certificate",
            problem: sentence(&problem),
            to_do:
                "Renew it, or remove what keeps it from being renewed. `porchlight check` says where it comes from. \
                    When it has expired, browsers refuse the site."
                    .to_owned(),
        })
    }

    fn disk_troubles(&self) -> impl Iterator<Item = Trouble> {
        let disks = DiskSpace::of(&self.data_dir, self.releases_dir.as_deref());
        disks.into_iter().filter(DiskSpace::is_low).map(|disk| Trouble {
            about: "Disk",
            problem: sentence(&disk.in_words()),
            to_do: FREE_UP_SPACE.to_owned(),
        })
    }

    /// A site that has published nothing yet is not in trouble.
    async fn image_trouble(&self) -> Result<Option<Trouble>, StoreFailure> {
        self.catalog.refresh().await?;
        if self.catalog.cached().newest().is_none() {
            return Ok(None);
        }
        let problem = image_problem(&self.catalog, &self.newest_image).await;
        Ok(problem.map(|problem| Trouble {
            about: "Newest image",
            problem: sentence(&format!("Downloads fail: {problem}")),
            to_do: "Copy the file back, from a backup or from where it was published, or publish another release."
                .to_owned(),
        }))
    }

    async fn waiting_mail_trouble(&self, now: Timestamp) -> Result<Option<Trouble>, StoreFailure> {
        Ok(outbox_problem(&self.ops_pool, now).await?.map(|problem| Trouble {
            about: "Mail that waits",
            problem: sentence(&problem),
            to_do: "`porchlight inbox list --waiting` shows what waits, and `porchlight inbox show ID` why the last attempt \
                    failed."
                .to_owned(),
        }))
    }

    async fn failed_mail_trouble(&self) -> Result<Option<Trouble>, StoreFailure> {
        let failed = self.ops_pool.backlog(MailKind::Message).await?.failed;
        Ok((failed > 0).then(|| Trouble {
            about: "Mail that failed",
            problem: format!(
                "{} not forwarded to you within {}, and {} not tried again.",
                quantity(failed, "message was", "messages were"),
                in_days(FORWARD_RETRY_PERIOD),
                plural_form(failed, "is", "are"),
            ),
            to_do:
                "Read it with `porchlight inbox list --failed`. `porchlight inbox retry --all` sends it once more, and \
                    `porchlight inbox discard ID` deletes what you do not want."
                    .to_owned(),
        }))
    }

    async fn confirmation_trouble(&self, now: Timestamp) -> Result<Option<Trouble>, StoreFailure> {
        let mails = self.ops_pool.backlog(MailKind::Confirmation).await?;
        let is_late = mails.oldest.is_some_and(|oldest| oldest.until(now) > MAX_CONFIRMATION_DELAY);
        Ok((is_late || mails.failed > 0).then(|| Trouble {
            about: "Confirmation mail",
            problem: sentence(&confirmations_in_words(&mails)),
            to_do: confirmations_to_do(&mails),
        }))
    }

    async fn backup_trouble(&self, now: Timestamp) -> Result<Option<Trouble>, StoreFailure> {
        let state = BackupState::of(&self.ops_pool, self.backs_up, now).await?;
        Ok(state.lasting_problem().map(|problem| Trouble {
            about: "Backup",
            problem: sentence(&problem),
            to_do: state.to_do().to_owned(),
        }))
    }
}

/// Logs why a part could not be looked at.
fn looked_at(part: Result<Option<Trouble>, StoreFailure>) -> Option<Trouble> {
    part.inspect_err(|failure| tracing::warn!(%failure, "failed to check a part of what needs attention"))
        .ok()
        .flatten()
}

/// What waits to be confirmed, as a part of a sentence.
pub fn confirmations_in_words(mails: &Backlog) -> String {
    let waiting = match mails.waiting + mails.leased {
        0 => None,
        1 => Some("1 person still waits for the mail that asks to confirm the opt-in".to_owned()),
        people => Some(format!("{people} people still wait for the mail that asks to confirm the opt-in")),
    };
    let failed = (mails.failed > 0).then(|| {
        let people = quantity(mails.failed, "person", "people");
        format!("{people} could not be asked to confirm the opt-in, because the mail was not accepted")
    });
    waiting.into_iter().chain(failed).collect::<Vec<_>>().join(", and ")
}

fn confirmations_to_do(mails: &Backlog) -> String {
    let mut to_do = "`porchlight check` says whether the mail server accepts mail.".to_owned();
    if mails.waiting + mails.leased > 0 {
        let _ = write!(to_do, " What waits is sent by itself, at most {MAX_CONFIRMATION_MAILS} mails in an hour.");
    }
    if mails.failed > 0 {
        let period = in_days(CONFIRMATION_PERIOD);
        let _ = write!(to_do, " Who could not be asked can opt in again {period} after the first time.");
    }
    to_do
}

fn in_days(period: Duration) -> String {
    quantity(period.as_secs() / (24 * 60 * 60), "day", "days")
}

/// Begins with a capital letter and ends with a full stop.
fn sentence(text: &str) -> String {
    format!("{}.", capitalised(text))
}
