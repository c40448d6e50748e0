//! Whether this instance can do its work.

use std::time::Duration;

use super::{Catalogue, NewestImage, Service};
use crate::domain::plural::quantity;

/// How long a message may wait for the mail server before it is told.
const LATE: Duration = Duration::from_hours(1);

/// One thing that work depends on, and what is wrong with it, if anything is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadinessCheck {
    pub name: &'static str,
    pub problem: Option<String>,
    /// Whether another instance may do better. Mail that waits, waits for all of them.
    pub fails_readiness: bool,
}

/// Looks at everything that downloads and messages depend on. Of what only the database could tell,
/// nothing is told while it is away.
pub async fn readiness(service: &Service) -> Vec<ReadinessCheck> {
    let part = |name, problem, fails_readiness| ReadinessCheck { name, problem, fails_readiness };
    let writer = service.writer.problem();
    if let Err(failure) = service.catalogue.refresh().await {
        let database = part("database", Some(failure.to_string()), true);
        return std::iter::once(database).chain(writer.map(|trouble| part("writer", Some(trouble), true))).collect();
    }
    let image = missing_image(&service.catalogue, &service.newest_image).await;
    // What nobody has published, no other instance has.
    let is_elsewhere = service.catalogue.cached().newest().is_some();
    vec![
        part("database", None, true),
        part("writer", writer, true),
        part("newest_image", image, is_elsewhere),
        part("outbox", late_mail(service).await, false),
    ]
}

/// Without a mail server, messages are meant to wait.
async fn late_mail(service: &Service) -> Option<String> {
    if !service.forwards_messages {
        return None;
    }
    let backlog = match service.ops_pool.backlog().await {
        Ok(backlog) => backlog,
        Err(failure) => return Some(failure.to_string()),
    };
    let age = backlog.oldest?.until(service.clock.now());
    (age >= LATE).then(|| {
        let waiting = quantity(backlog.waiting + backlog.leased, "message waits", "messages wait");
        format!("{waiting} for the mail server, the oldest for {} minutes", age.as_secs() / 60)
    })
}

/// Why those who download get no image, as far as the catalogue knows. The newest release may have
/// been published on another machine, into a folder we do not share.
pub async fn missing_image(catalogue: &Catalogue, newest_image: &NewestImage) -> Option<String> {
    if matches!(newest_image, NewestImage::External(_)) {
        return None;
    }
    let releases = catalogue.cached();
    let Some(release) = releases.newest() else {
        return newest_image.requires_release().then(|| "nothing has been published".to_owned());
    };
    if release.elsewhere.is_some() {
        return None;
    }
    catalogue.open(release).await.err().map(|why| {
        format!(
            "{} cannot be read here ({why}); all instances have to share the folder of the setting releases_dir",
            release.file
        )
    })
}
