//! Sends the letters whose sending was begun at the desk: on every instance, and again after a restart, until they are complete or
//! somebody stops them.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::run::{LetterEnd, LetterEvent, run_letter};
use super::send::{LetterFailure, LetterSender};
use crate::actions::failure::Failure;
use crate::clock::Clock;
use crate::domain::letters::{Letter, LetterRun};
use crate::domain::network::BaseUrl;
use crate::domain::sha256::Sha256;
use crate::domain::time::Timestamp;
use crate::mail::{MailAddress, Mailer};
use crate::site::CurrentMailTemplates;
use crate::store::{ClaimTerms, Store, StoreFailure};

/// What letters are sent with.
#[derive(Clone, Debug)]
pub struct LettersOfService {
    pub store: Store,
    pub mailer: Mailer,
    pub templates: CurrentMailTemplates,
    pub base_url: BaseUrl,
    pub contact_to: MailAddress,
    /// Between two copies, of all senders together.
    pub interval: Duration,
    pub letters_archive: bool,
    pub clock: Clock,
}

impl LettersOfService {
    /// Sends one letter, as far as it can be sent now. Returns whether there was one. A failure of the database is returned, and the
    /// letter is sent later; whatever else fails stops it.
    pub async fn step(&self, stop: &CancellationToken) -> Result<bool, Failure> {
        let Some(id) = self.store.letter_of_service(self.clock.now()).await? else { return Ok(false) };
        let (to, reason) = match self.send(&id, stop).await {
            Ok(()) => (LetterRun::Command, None),
            Err(LetterEnd::Interrupted | LetterEnd::NotOurs(_) | LetterEnd::Deferred(_)) => return Ok(true),
            Err(LetterEnd::Failed(LetterFailure::Store(failure))) => return Err(failure),
            Err(end) => (LetterRun::Stopped, Some(end.to_string())),
        };
        let letter = id.short(8);
        match &reason {
            None => tracing::info!(letter, "a letter is sent to everybody who gets it"),
            Some(reason) => tracing::warn!(letter, reason, "a letter is stopped"),
        }
        self.store.change_letter_run(&id, LetterRun::Service, to, reason.as_deref()).await?;
        Ok(true)
    }

    async fn send(&self, id: &Sha256, stop: &CancellationToken) -> Result<(), LetterEnd> {
        let Some(letter) = self.store.stored_letter(id).await.map_err(failed)? else { return Ok(()) };
        let (store, mailer, base_url) = (self.store.clone(), self.mailer.clone(), self.base_url.clone());
        let (contact_to, clock) = (self.contact_to.clone(), self.clock.clone());
        let templates = self.templates.get();
        let mut sender = LetterSender::new(store, mailer, templates, base_url, letter, contact_to, clock);
        sender.terms = ClaimTerms { run: LetterRun::Service, interval: Some(self.interval) };
        sender.is_archived = self.letters_archive;
        match self.store.letter(id).await.map_err(failed)? {
            // Those whom the mail server deferred go on waiting.
            Some(started) => sender.is_archived = started.archived,
            None => sender.start().await?,
        }
        let warn = |event: LetterEvent<'_>| {
            if let LetterEvent::Unavailable(reason, pause) = event {
                tracing::warn!(
                    reason,
                    seconds = pause.as_secs(),
                    "the mail server is unavailable for a letter; trying again"
                );
            }
        };
        run_letter(&mut sender, stop, warn).await
    }
}

/// Has the service send a letter, from its beginning or from where it was stopped. Returns `false` if it is not in the state
/// `from` any more, which is that of a letter that nobody has begun, too.
pub async fn send_by_service(
    store: &Store,
    letter: &Letter,
    from: LetterRun,
    now: Timestamp,
) -> Result<bool, StoreFailure> {
    store.prepare_letter(letter).await?;
    store.end_deferrals(&letter.id, now).await?;
    store.change_letter_run(&letter.id, from, LetterRun::Service, None).await
}

/// Stops a letter, whoever sends it, after the copy that is being sent. Returns `false` if nobody does any more.
pub async fn stop_letter(store: &Store, id: &Sha256) -> Result<bool, StoreFailure> {
    let is_of_service = store.change_letter_run(id, LetterRun::Service, LetterRun::Stopped, None).await?;
    Ok(is_of_service || store.change_letter_run(id, LetterRun::Command, LetterRun::Stopped, None).await?)
}

fn failed(failure: StoreFailure) -> LetterEnd {
    LetterEnd::Failed(Failure::from(failure).into())
}
