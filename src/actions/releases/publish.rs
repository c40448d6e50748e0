//! Publishes a release.
//!
//! Into a folder, the image is copied to `.partial`, synced to disk, renamed, and recorded last: a file without a row is
//! not served. Into a bucket, it is uploaded, verified there, and recorded last.
//! If the process dies in between, the newest release stays, and publishing can be repeated from the start.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use super::images_and_catalog::ImageStore;
use crate::bucket::BucketFailure;
use crate::domain::parse::Invalid;
use crate::domain::releases::disk_image;
use crate::domain::releases::{
    BuildNumber, Candidate, Channel, ImageName, MacosVersion, Notes, PublishRejection, Release, Releases, RolloutDays,
    Signature, TRAILER_SIZE, Version,
};
use crate::domain::sha256::{Sha256, Sha256Hasher};
use crate::domain::time::Timestamp;
use crate::store::{Store, StoreFailure};

/// A release to publish.
#[derive(Clone, Debug)]
pub struct NewRelease {
    pub version: Version,
    pub image: ImageSource,
    pub notes: Notes,
    pub build: Option<BuildNumber>,
    pub signature: Option<Signature>,
    pub minimum_macos: Option<MacosVersion>,
    pub channel: Channel,
    pub critical: bool,
    pub phased: RolloutDays,
    /// Publish even if a higher version exists, or if Sparkle would not offer it to everybody.
    pub force: bool,
}

#[derive(Clone, Debug)]
pub enum ImageSource {
    File(PathBuf),
    /// Hosted elsewhere. Length and SHA-256 are as given, not verified.
    External {
        url: String,
        length: u64,
        sha256: Sha256,
    },
}

/// Why nothing was published.
#[derive(Debug, thiserror::Error)]
pub enum PublishFailure {
    #[error("Nothing was published: {0}.")]
    Rejected(#[from] PublishRejection),
    #[error("Nothing was published: the app's name in site.toml is too long for a file name; shorten it.")]
    Name(Invalid),
    #[error("{} cannot be published: {why}.", .path.display())]
    NotAnImage { path: PathBuf, why: Invalid },
    #[error("{} cannot be published: it changed while it was being copied. Try again when it is complete.", .0.display())]
    Changed(PathBuf),
    #[error("{} cannot be read: {why}.", .path.display())]
    Unreadable { path: PathBuf, why: io::Error },
    #[error("Nothing was published: {} cannot be written: {why}.", .path.display())]
    Unwritable { path: PathBuf, why: io::Error },
    #[error("Nothing was published, because the image could not be stored as {object}: {why}.")]
    Bucket { object: String, why: BucketFailure },
    #[error("Another release is being published into {} right now. Try again when that is finished.", .0.display())]
    Busy(PathBuf),
    #[error("{}", .0.sentence("Nothing was published"))]
    Store(#[from] StoreFailure),
}

/// Where releases are stored.
#[derive(Debug)]
pub struct ReleaseStore<'a> {
    pub store: &'a Store,
    pub images: &'a ImageStore,
    /// The app's name, which starts the file names.
    pub app: &'a str,
}

/// Publishes a release. `progress` gets the number of copied bytes and of all bytes.
///
/// The newest release is the highest version of the stable channel that is not withdrawn ([`Releases::newest`]). A
/// version or file name is never reused, not even after a withdrawal ([`Releases::check_publishable`]); of two
/// concurrent publications of one version, [`Store::add_release`] records one.
pub async fn publish_release(
    release_store: &ReleaseStore<'_>,
    new_release: NewRelease,
    at: Timestamp,
    progress: impl FnMut(u64, u64) + Send + 'static,
) -> Result<Release, PublishFailure> {
    let file = ImageName::new(release_store.app, &new_release.version).map_err(PublishFailure::Name)?;
    let check_publishable = |releases: &Releases| {
        let NewRelease { version, channel, build, signature, force, .. } = &new_release;
        let (build, signature) = (build.as_ref(), signature.as_ref());
        releases.check_publishable(Candidate { version, channel, build, signature, force: *force }, &file)
    };
    check_publishable(&release_store.store.releases().await?)?;
    let release = |external_url, (length, sha256)| Release {
        version: new_release.version.clone(),
        file: file.clone(),
        external_url,
        length,
        sha256,
        notes: new_release.notes.clone(),
        build: new_release.build.clone(),
        signature: new_release.signature.clone(),
        minimum_macos: new_release.minimum_macos.clone(),
        channel: new_release.channel.clone(),
        critical: new_release.critical,
        phased: new_release.phased,
        published: at,
        withdrawn: None,
    };
    let mut in_folder = None;
    let release = match (&new_release.image, release_store.images) {
        (ImageSource::External { url, length, sha256 }, _) => release(Some(url.clone()), (*length, *sha256)),
        (ImageSource::File(source), ImageStore::Folder(folder)) => {
            check_disk_image(source)?;
            let lock = lock_folder(folder)?;
            // Deleted when dropped. The name is fixed, so that the next run overwrites what a killed one left.
            let partial = TempPath::try_from_path(folder.join(".partial")).map_err(|why| unwritable(folder, why))?;
            let read = read_source(source, Some(partial.to_path_buf()), progress).await?;
            in_folder = Some((folder, partial, lock));
            release(None, read)
        }
        (ImageSource::File(source), ImageStore::Bucket(bucket)) => {
            check_disk_image(source)?;
            let release = release(None, read_source(source, None, |_, _| {}).await?);
            let (length, mut progress) = (release.length, progress);
            let uploaded = bucket.upload(source, &release, move |done| progress(done, length)).await;
            uploaded.map_err(|why| PublishFailure::Bucket { object: bucket.object_name(&release), why })?;
            release
        }
    };
    // Copying takes a while: another release may have been published meanwhile.
    check_publishable(&release_store.store.releases().await?)?;
    // Held until the release is recorded.
    let mut _lock = None;
    if let Some((folder, partial, lock)) = in_folder {
        _lock = Some(lock);
        // A file of that name has no row: it is left from an interrupted publication and is replaced.
        partial.persist(folder.join(&file)).map_err(|failure| unwritable(folder, failure.error))?;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(|why| unwritable(folder, why))?;
    }
    if release_store.store.add_release(&release).await? {
        Ok(release)
    } else {
        Err(PublishRejection::VersionUsed(release.version).into())
    }
}

fn unwritable(path: &Path, why: io::Error) -> PublishFailure {
    PublishFailure::Unwritable { path: path.to_owned(), why }
}

/// Checks by the trailer that the file is a complete disk image.
fn check_disk_image(path: &Path) -> Result<(), PublishFailure> {
    let unreadable = |why| PublishFailure::Unreadable { path: path.to_owned(), why };
    let mut file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if metadata.is_dir() {
        return Err(unreadable(io::ErrorKind::IsADirectory.into()));
    }
    let mut trailer = [0; TRAILER_SIZE];
    if metadata.len() >= TRAILER_SIZE as u64 {
        file.seek(SeekFrom::Start(metadata.len() - TRAILER_SIZE as u64)).map_err(unreadable)?;
        file.read_exact(&mut trailer).map_err(unreadable)?;
    }
    disk_image::check(&trailer, metadata.len()).map_err(|why| PublishFailure::NotAnImage { path: path.to_owned(), why })
}

/// Locks the folder against other publications until the returned file is dropped.
fn lock_folder(folder: &Path) -> Result<File, PublishFailure> {
    let unwritable = |why| unwritable(folder, why);
    fs::create_dir_all(folder).map_err(unwritable)?;
    let lock = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join(".lock"));
    let lock = lock.map_err(unwritable)?;
    lock.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => PublishFailure::Busy(folder.to_owned()),
        TryLockError::Error(why) => unwritable(why),
    })?;
    Ok(lock)
}

/// Returns the length and SHA-256 of the image, and copies it to disk if there is a place for the copy.
async fn read_source(
    source: &Path,
    copy_to: Option<PathBuf>,
    progress: impl FnMut(u64, u64) + Send + 'static,
) -> Result<(u64, Sha256), PublishFailure> {
    let from = source.to_owned();
    let read = tokio::task::spawn_blocking(move || copy_image(&from, copy_to.as_deref(), progress)).await;
    read.map_err(|why| PublishFailure::Unreadable { path: source.to_owned(), why: io::Error::other(why) })?
}

fn copy_image(
    from: &Path,
    to: Option<&Path>,
    mut progress: impl FnMut(u64, u64),
) -> Result<(u64, Sha256), PublishFailure> {
    let unreadable = |why| PublishFailure::Unreadable { path: from.to_owned(), why };
    let unwritable = |why| unwritable(to.unwrap_or(from), why);
    let length = fs::metadata(from).map_err(unreadable)?.len();
    let (mut copy, mut done) = (to.map(File::create).transpose().map_err(unwritable)?, 0);
    let read = read_image(from, unreadable, |chunk| {
        if let Some(copy) = &mut copy {
            copy.write_all(chunk).map_err(unwritable)?;
        }
        done += chunk.len() as u64;
        progress(done, length);
        Ok(())
    })?;
    if let Some(copy) = copy {
        copy.sync_all().map_err(unwritable)?;
    }
    if read.0 == length { Ok(read) } else { Err(PublishFailure::Changed(from.to_owned())) }
}

const IMAGE_CHUNK_SIZE: usize = 1024 * 1024;

/// Reads an image, and returns its length and SHA-256. `consume` gets each chunk.
pub fn read_image<E>(
    path: &Path,
    unreadable: impl Fn(io::Error) -> E,
    mut consume: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(u64, Sha256), E> {
    let mut file = BufReader::with_capacity(IMAGE_CHUNK_SIZE, File::open(path).map_err(&unreadable)?);
    let (mut length, mut hasher) = (0, Sha256Hasher::default());
    loop {
        let chunk = file.fill_buf().map_err(&unreadable)?;
        if chunk.is_empty() {
            return Ok((length, hasher.finish()));
        }
        hasher.update(chunk);
        consume(chunk)?;
        let count = chunk.len();
        length += count as u64;
        file.consume(count);
    }
}
