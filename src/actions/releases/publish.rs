//! Publishes a release.
//!
//! Into a folder, the image is copied to `.partial`, synced to disk, renamed, and recorded last: a file without a row is
//! not served. Into a bucket, it is uploaded, verified there, and recorded last. An image that arrives as a stream is written
//! to `.partial` in either case.
//! If the process dies in between, the newest release stays, and publishing can be repeated from the start.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use rustix::fs::statvfs;
use tempfile::TempPath;
use tokio_util::sync::CancellationToken;

use super::images_and_catalog::ImageStore;
use crate::blocking::blocking;
use crate::bucket::{Bucket, BucketFailure};
use crate::domain::limits::RESERVED_DISK_BYTES;
use crate::domain::parse::Invalid;
use crate::domain::releases::disk_image;
use crate::domain::releases::{
    BuildNumber, Candidate, Channel, ImageName, MacosVersion, Notes, PublishRejection, Release, Releases, RolloutDays,
    Signature, TRAILER_SIZE, Version,
};
use crate::domain::sha256::{Sha256, Sha256Hasher};
use crate::domain::time::Timestamp;
use crate::store::{Store, StoreFailure};

/// A release to publish, without its image.
#[derive(Clone, Debug)]
pub struct NewRelease {
    pub version: Version,
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

impl NewRelease {
    /// Checks it without its image. Returns the name of its file.
    pub(super) fn check(&self, releases: &Releases, app: &str) -> Result<ImageName, PublishFailure> {
        let file = ImageName::new(app, &self.version).map_err(PublishFailure::Name)?;
        let Self { version, channel, build, signature, force, .. } = self;
        let (build, signature) = (build.as_ref(), signature.as_ref());
        releases.check_publishable(Candidate { version, channel, build, signature, force: *force }, &file)?;
        Ok(file)
    }
}

#[derive(Debug)]
pub enum ImageSource {
    File(PathBuf),
    Stream(ImageStream),
    /// Hosted elsewhere. Length and SHA-256 are as given, not verified.
    External {
        url: String,
        length: u64,
        sha256: Sha256,
    },
}

/// An image that arrives while it is published.
pub struct ImageStream {
    pub bytes: Box<dyn Read + Send>,
    /// How many bytes it has, as far as that is known: a form only says how long all of it is. `None`: as many as there are.
    pub length: Option<RangeInclusive<u64>>,
    /// Cancelled when the service stops. The bytes end then.
    pub stop: CancellationToken,
    /// Whether whoever sends it still may, asked before the release is recorded.
    pub permission: Option<BoxFuture<'static, Result<bool, StoreFailure>>>,
}

impl fmt::Debug for ImageStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImageStream").field("length", &self.length).finish_non_exhaustive()
    }
}

/// What sentences call a stream instead of a path.
const STREAM: &str = "The image";

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
    #[error("Nothing was published: only {arrived} of {length} bytes arrived. Try again.")]
    Incomplete { arrived: u64, length: u64 },
    #[error("Nothing was published: {} has room for {free} bytes, and the image has {length}. Free up space.", .folder.display())]
    NoRoom { folder: PathBuf, free: u64, length: u64 },
    #[error("Nothing was published, because the service is stopping. Try again.")]
    Stopped,
    #[error("Nothing was published: the session or the token was ended while the image arrived.")]
    NotAllowed,
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
    /// Where a stream is kept until the bucket has it.
    pub data_dir: &'a Path,
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
    mut image: ImageSource,
    at: Timestamp,
    progress: impl FnMut(u64, u64) + Send + 'static,
) -> Result<Release, PublishFailure> {
    let permission = match &mut image {
        ImageSource::Stream(stream) => stream.permission.take(),
        ImageSource::File(_) | ImageSource::External { .. } => None,
    };
    let file = new_release.check(&release_store.store.releases().await?, release_store.app)?;
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
    let release = match (image, release_store.images) {
        (ImageSource::External { url, length, sha256 }, _) => release(Some(url), (length, sha256)),
        (ImageSource::File(source), ImageStore::Folder(folder)) => {
            check_disk_image(&source, &source)?;
            let partial = Partial::begin(folder)?;
            let read = read_file(&source, Some(partial.path.to_path_buf()), progress).await?;
            in_folder = Some((folder, partial));
            release(None, read)
        }
        (ImageSource::File(source), ImageStore::Bucket(bucket)) => {
            check_disk_image(&source, &source)?;
            let release = release(None, read_file(&source, None, |_, _| {}).await?);
            upload(bucket, &source, &release, progress).await?;
            release
        }
        (ImageSource::Stream(stream), ImageStore::Folder(folder)) => {
            let (partial, read) = receive(stream, folder, progress).await?;
            in_folder = Some((folder, partial));
            release(None, read)
        }
        (ImageSource::Stream(stream), ImageStore::Bucket(bucket)) => {
            let stop = stream.stop.clone();
            let (partial, read) = receive(stream, &release_store.data_dir.join("uploads"), |_, _| {}).await?;
            let release = release(None, read);
            let uploaded = stop.run_until_cancelled(upload(bucket, &partial.path, &release, progress)).await;
            uploaded.ok_or(PublishFailure::Stopped)??;
            release
        }
    };
    // Copying takes a while: another release may have been published meanwhile.
    new_release.check(&release_store.store.releases().await?, release_store.app)?;
    // Held until the release is recorded.
    let mut _lock = None;
    if let Some((folder, Partial { path, lock })) = in_folder {
        _lock = Some(lock);
        // A file of that name has no row: it is left from an interrupted publication and is replaced.
        let persist = || path.persist(folder.join(&file)).map_err(|failure| failure.error);
        blocking(|| persist().and_then(|()| File::open(folder)?.sync_all())).map_err(|why| unwritable(folder, why))?;
    }
    if let Some(permission) = permission
        && !permission.await?
    {
        return Err(PublishFailure::NotAllowed);
    }
    let check = |releases: &Releases| new_release.check(releases, release_store.app).map(drop);
    if release_store.store.add_release(&release, check).await? {
        Ok(release)
    } else {
        Err(PublishRejection::VersionUsed(release.version).into())
    }
}

async fn upload(
    bucket: &Bucket,
    file: &Path,
    release: &Release,
    mut progress: impl FnMut(u64, u64) + Send + 'static,
) -> Result<(), PublishFailure> {
    let length = release.length;
    let uploaded = bucket.upload(file, release, move |done| progress(done, length)).await;
    uploaded.map_err(|why| PublishFailure::Bucket { object: bucket.object_name(release), why })
}

/// Where an image is written before it is published. One publication at a time has the place in a folder.
struct Partial {
    /// Deleted when dropped. The name is fixed, so that the next run overwrites what a killed one left.
    path: TempPath,
    lock: File,
}

impl Partial {
    fn begin(folder: &Path) -> Result<Self, PublishFailure> {
        let lock = lock_folder(folder)?;
        let path = TempPath::try_from_path(folder.join(".partial")).map_err(|why| unwritable(folder, why))?;
        Ok(Self { path, lock })
    }
}

/// Writes a stream into the folder, and checks it there. Nothing is read if it would not fit.
async fn receive(
    stream: ImageStream,
    folder: &Path,
    progress: impl FnMut(u64, u64) + Send + 'static,
) -> Result<(Partial, (u64, Sha256)), PublishFailure> {
    let partial = blocking(|| {
        let partial = Partial::begin(folder)?;
        let disk = statvfs(folder).map_err(|why| unwritable(folder, why.into()))?;
        let [free, all] = [disk.f_bavail, disk.f_blocks].map(|blocks| blocks.saturating_mul(disk.f_frsize));
        let free = free.saturating_sub(RESERVED_DISK_BYTES.min(all / 10));
        match stream.length.as_ref().map(|length| *length.end()) {
            Some(length) if length > free => Err(PublishFailure::NoRoom { folder: folder.to_owned(), free, length }),
            _ => Ok(partial),
        }
    })?;
    let read = read_stream(stream, Some(partial.path.to_path_buf()), progress).await?;
    blocking(|| check_disk_image(&partial.path, Path::new(STREAM)))?;
    Ok((partial, read))
}

fn unwritable(path: &Path, why: io::Error) -> PublishFailure {
    PublishFailure::Unwritable { path: path.to_owned(), why }
}

/// Checks by the trailer that the file is a complete disk image. `name` is what a sentence calls it.
fn check_disk_image(path: &Path, name: &Path) -> Result<(), PublishFailure> {
    let unreadable = |why| PublishFailure::Unreadable { path: name.to_owned(), why };
    let mut file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if metadata.is_dir() {
        return Err(unreadable(io::ErrorKind::IsADirectory.into()));
    }
    let mut end = Vec::new();
    file.seek(SeekFrom::Start(metadata.len().saturating_sub(TRAILER_SIZE as u64))).map_err(unreadable)?;
    file.take(TRAILER_SIZE as u64).read_to_end(&mut end).map_err(unreadable)?;
    disk_image::check(&end, metadata.len()).map_err(|why| PublishFailure::NotAnImage { path: name.to_owned(), why })
}

/// The same of an image that has not arrived yet, by its last bytes.
pub fn check_end(end: &[u8], length: u64) -> Result<(), PublishFailure> {
    disk_image::check(end, length).map_err(|why| PublishFailure::NotAnImage { path: STREAM.into(), why })
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
async fn read_file(
    source: &Path,
    copy_to: Option<PathBuf>,
    progress: impl FnMut(u64, u64) + Send + 'static,
) -> Result<(u64, Sha256), PublishFailure> {
    let unreadable = |why| PublishFailure::Unreadable { path: source.to_owned(), why };
    let image = File::open(source).map_err(unreadable)?;
    let length = image.metadata().map_err(unreadable)?.len();
    let read = copy_image(source.to_owned(), image, Some(length), copy_to, progress).await?;
    if read.0 == length { Ok(read) } else { Err(PublishFailure::Changed(source.to_owned())) }
}

/// The same for a stream.
pub(super) async fn read_stream(
    stream: ImageStream,
    copy_to: Option<PathBuf>,
    progress: impl FnMut(u64, u64) + Send + 'static,
) -> Result<(u64, Sha256), PublishFailure> {
    let ImageStream { bytes, length, stop, .. } = stream;
    let longest = length.as_ref().map(|length| *length.end());
    let read = copy_image(STREAM.into(), bytes, longest, copy_to, progress).await;
    match (read, length) {
        (Ok(read), None) => Ok(read),
        (Ok(read), Some(length)) if length.contains(&read.0) => Ok(read),
        (Ok(_) | Err(PublishFailure::Unreadable { .. }), _) if stop.is_cancelled() => Err(PublishFailure::Stopped),
        (Ok((arrived, _)), Some(length)) => Err(PublishFailure::Incomplete { arrived, length: *length.end() }),
        (Err(failure), _) => Err(failure),
    }
}

/// Reads and writes on a thread of its own, because a stream may take any time.
async fn copy_image(
    name: PathBuf,
    image: impl Read + Send + 'static,
    length: Option<u64>,
    copy_to: Option<PathBuf>,
    mut progress: impl FnMut(u64, u64) + Send + 'static,
) -> Result<(u64, Sha256), PublishFailure> {
    let unreadable = move |why| PublishFailure::Unreadable { path: name.clone(), why };
    let failed = unreadable.clone();
    let place = copy_to.clone();
    let unwritable = move |why| unwritable(place.as_deref().unwrap_or(Path::new(STREAM)), why);
    // Not on the other thread: if this future is dropped before that begins, the file is one of the next publication.
    let mut copy = copy_to.map(|path| blocking(|| File::create(path))).transpose().map_err(&unwritable)?;
    let copy = move || {
        let mut done = 0;
        let read = read_image(image, unreadable, |chunk| {
            if let Some(copy) = &mut copy {
                copy.write_all(chunk).map_err(&unwritable)?;
            }
            done += chunk.len() as u64;
            progress(done, length.unwrap_or(done));
            Ok(())
        })?;
        if let Some(copy) = copy {
            copy.sync_all().map_err(&unwritable)?;
        }
        Ok(read)
    };
    tokio::task::spawn_blocking(copy).await.map_err(|why| failed(io::Error::other(why)))?
}

const IMAGE_CHUNK_SIZE: usize = 1024 * 1024;

/// Reads an image, and returns its length and SHA-256. `consume` gets each chunk.
pub fn read_image<E>(
    image: impl Read,
    unreadable: impl Fn(io::Error) -> E,
    mut consume: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(u64, Sha256), E> {
    let mut image = BufReader::with_capacity(IMAGE_CHUNK_SIZE, image);
    let (mut length, mut hasher) = (0, Sha256Hasher::default());
    loop {
        let chunk = image.fill_buf().map_err(&unreadable)?;
        if chunk.is_empty() {
            return Ok((length, hasher.finish()));
        }
        hasher.update(chunk);
        consume(chunk)?;
        let count = chunk.len();
        length += count as u64;
        image.consume(count);
    }
}
