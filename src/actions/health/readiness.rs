//! Whether this instance can serve downloads and messages, for `/readyz` and the dashboard.

use std::time::Duration;

use tokio::time::timeout;

use crate::actions::backup::BackupState;
use crate::actions::releases::{ImageStore, NewestImage, ReleaseCatalog};
use crate::actions::service::Service;
use crate::domain::text::quantity;
use crate::domain::time::Timestamp;
use crate::store::{MailKind, Store, StoreFailure};

/// How long a message may wait for the mail server before that is reported.
const MAX_OUTBOX_AGE: Duration = Duration::from_hours(1);

/// How long the bucket may keep the answer waiting: load balancers ask every few seconds.
const IMAGE_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadinessCheck {
    pub name: &'static str,
    pub problem: Option<String>,
    /// What to know if there is none.
    pub note: Option<String>,
    /// Whether a problem makes `/readyz` fail, because another instance may do better.
    pub fails_readiness: bool,
}

/// Checks everything that downloads and messages depend on. While the database is unavailable, checks that need it are
/// left out.
pub async fn readiness(service: &Service) -> Vec<ReadinessCheck> {
    let check = |name, problem, fails_readiness| ReadinessCheck { name, problem, note: None, fails_readiness };
    let writer = service.writer.unavailable_reason();
    let certificate = service.certificate.as_ref();
    let certificate = certificate.map(|status| ReadinessCheck {
        note: status.expires().map(|expires| format!("valid until {}", expires.date())),
        ..check("certificate", status.problem(service.clock.now()), status.expires().is_none())
    });
    if let Err(failure) = service.catalog.refresh().await {
        let database = check("database", Some(failure.to_string()), true);
        let writer = writer.map(|problem| check("writer", Some(problem), true));
        return std::iter::once(database).chain(writer).chain(certificate).collect();
    }
    let image = image_problem(&service.catalog, &service.newest_image);
    let too_long = || Some("the newest image was not found in time".to_owned());
    let image = timeout(IMAGE_TIMEOUT, image).await.unwrap_or_else(|_| too_long());
    let is_sample =
        matches!(service.newest_image, NewestImage::Preview(_)) && service.catalog.cached().newest().is_none();
    // Without any release, and with a bucket, no other instance has an image either.
    let is_local =
        service.catalog.cached().newest().is_some() && matches!(service.catalog.images(), ImageStore::Folder(_));
    // Without a configured mail server, messages are not meant to be forwarded.
    let outbox =
        if service.forwards_messages { outbox_problem(&service.ops_pool, service.clock.now()).await } else { Ok(None) };
    let outbox = outbox.unwrap_or_else(|failure| Some(failure.to_string()));
    let backup = BackupState::of(&service.ops_pool, service.backs_up, service.clock.now()).await;
    let backup = backup.ok().filter(|_| service.backs_up);
    let backup =
        backup.map(|state| ReadinessCheck { note: state.in_words(), ..check("backup", state.problem(), false) });
    let checks = [
        check("database", None, true),
        check("writer", writer, true),
        ReadinessCheck {
            note: is_sample.then(|| "as a sample: nothing is published yet".to_owned()),
            ..check("newest_image", image, is_local)
        },
        check("outbox", outbox, false),
    ];
    checks.into_iter().chain(backup).chain(certificate).collect()
}

/// Returns that messages wait for too long.
pub(super) async fn outbox_problem(store: &Store, now: Timestamp) -> Result<Option<String>, StoreFailure> {
    let backlog = store.backlog(MailKind::Message).await?;
    let age = backlog.oldest.map(|oldest| oldest.until(now)).filter(|age| *age >= MAX_OUTBOX_AGE);
    Ok(age.map(|age| match backlog.waiting + backlog.leased {
        1 => format!("1 message waits for the mail server, for {} now", in_words(age)),
        number => format!("{number} messages wait for the mail server, the oldest for {}", in_words(age)),
    }))
}

fn in_words(age: Duration) -> String {
    let minutes = age.as_secs() / 60;
    match minutes / 60 {
        0..2 => quantity(minutes, "minute", "minutes"),
        hours @ 2..48 => format!("{hours} hours"),
        hours => format!("{} days", hours / 24),
    }
}

/// Returns why downloads get no image, according to the cached releases. The newest release may have been published on
/// another machine, into a folder that this instance does not share.
pub async fn image_problem(catalog: &ReleaseCatalog, newest_image: &NewestImage) -> Option<String> {
    if matches!(newest_image, NewestImage::External(_)) {
        return None;
    }
    let releases = catalog.cached();
    let Some(release) = releases.newest() else {
        return newest_image.requires_release().then(|| "nothing has been published".to_owned());
    };
    if release.external_url.is_some() {
        return None;
    }
    let why = catalog.images().check(release).await.err()?;
    Some(match catalog.images() {
        ImageStore::Folder(_) => {
            let shared = if catalog.may_be_shared() {
                "; if several instances run, all of them need the same folder as `releases_dir`"
            } else {
                ""
            };
            format!("{} cannot be read here: {why}{shared}", release.file)
        }
        ImageStore::Bucket(bucket) => format!("{} cannot be read: {why}", bucket.object_name(release)),
    })
}
