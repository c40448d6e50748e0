//! What may be published: a version and a file name once, and nothing that would not be the newest.

use super::disk_image::ImageName;
use super::release::Releases;
use super::version::Version;

/// Why a release cannot be published.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishRejection {
    #[error("version {0} is already published; choose a higher one")]
    VersionUsed(Version),
    #[error("version {0} was withdrawn and cannot be used again; choose a higher one")]
    VersionWithdrawn(Version),
    #[error("the file name {0} is already used; choose a higher version")]
    NameUsed(ImageName),
    #[error("{0} is not newer than {1}; add --force to publish it anyway, which does not make it the newest")]
    NotNewer(Version, Version),
    #[error("{0} is a pre-release version; add --prerelease to publish it as one")]
    PrereleaseFlagMissing(Version),
}

impl Releases {
    /// Checks whether a release of this version may be published.
    pub fn check_publishable(
        &self,
        version: &Version,
        file: &ImageName,
        prerelease: bool,
        force: bool,
    ) -> Result<(), PublishRejection> {
        if let Some(known) = self.find_version(version) {
            return Err(match known.withdrawn {
                Some(_) => PublishRejection::VersionWithdrawn(version.clone()),
                None => PublishRejection::VersionUsed(version.clone()),
            });
        }
        if self.find_file(file.as_str()).is_some() {
            return Err(PublishRejection::NameUsed(file.clone()));
        }
        if version.is_prerelease() && !prerelease {
            return Err(PublishRejection::PrereleaseFlagMissing(version.clone()));
        }
        let highest = self.available().find(|release| prerelease || !release.prerelease);
        match highest {
            Some(highest) if !force && highest.version > *version => {
                Err(PublishRejection::NotNewer(version.clone(), highest.version.clone()))
            }
            _ => Ok(()),
        }
    }
}
