//! Whether this instance can do its work.

use super::{Catalogue, NewestImage, Service};

/// One thing that work depends on, and what is wrong with it, if anything is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub name: &'static str,
    pub trouble: Option<String>,
}

/// Looks at everything that downloads and messages depend on.
pub async fn readiness(service: &Service) -> Vec<Part> {
    let database = service.catalogue.look().await.err().map(|failure| failure.to_string());
    let newest_image = missing_image(&service.catalogue, &service.newest_image).await;
    vec![Part { name: "database", trouble: database }, Part { name: "newest_image", trouble: newest_image }]
}

/// Why those who download get no image, as far as the catalogue knows. The newest release may have
/// been published on another machine, into a folder we do not share.
pub async fn missing_image(catalogue: &Catalogue, newest_image: &NewestImage) -> Option<String> {
    let releases = catalogue.known();
    let Some(release) = releases.newest() else {
        return newest_image.is_of_release().then(|| "nothing has been published".to_owned());
    };
    if release.elsewhere.is_some() {
        return None;
    }
    catalogue
        .open(release)
        .await
        .err()
        .map(|why| format!("{} cannot be read here ({why}); all instances have to share `releases_dir`", release.file))
}
