//! A maker publishes a release.
//!
//! The image is copied under another name, brought to disk whole, renamed, and recorded last: what
//! the database does not know is not there for anybody. Whatever ends the program in between leaves
//! the newest release as it was, and publishing again picks up from the start.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::domain::disk_image::{self, NotADiskImage, TRAILER};
use crate::domain::release::{Notes, RejectedRelease, Release, Releases, Signature, file_name};
use crate::domain::sha256::{Sha256, Sha256Hasher};
use crate::domain::time::Timestamp;
use crate::domain::version::{Build, SystemVersion, Version};
use crate::store::{Store, StoreFailure};

/// What a maker wants to publish.
#[derive(Clone, Debug)]
pub struct Publication {
    pub version: Version,
    pub image: ImageSource,
    pub notes: Notes,
    pub build: Option<Build>,
    pub signature: Option<Signature>,
    pub minimum_macos: Option<SystemVersion>,
    pub prerelease: bool,
    /// Even if it is not newer.
    pub force: bool,
}

#[derive(Clone, Debug)]
pub enum ImageSource {
    File(PathBuf),
    /// Another host has it. We take the maker's word for what it is.
    External {
        url: String,
        length: u64,
        sha256: Sha256,
    },
}

/// Nothing was published, and why.
#[derive(Debug, thiserror::Error)]
pub enum PublishFailure {
    #[error("Nothing was published: {0}.")]
    Unwelcome(#[from] RejectedRelease),
    #[error("{} cannot be published: {why}.", .path.display())]
    NotAnImage { path: PathBuf, why: NotADiskImage },
    #[error("{} cannot be published: it changed while it was being copied. Try again when it is finished.", .0.display())]
    Changed(PathBuf),
    #[error("{} cannot be read: {why}.", .path.display())]
    Unreadable { path: PathBuf, why: io::Error },
    #[error("Nothing was published: {} cannot be written to: {why}.", .path.display())]
    Unwritable { path: PathBuf, why: io::Error },
    #[error("Another release is being published into {} right now. Try again when that is done.", .0.display())]
    Busy(PathBuf),
    #[error("Nothing was published: {0}.")]
    Store(#[from] StoreFailure),
}

/// Where releases are kept.
#[derive(Debug)]
pub struct ReleaseStore<'a> {
    pub store: &'a Store,
    pub folder: &'a Path,
    /// What the images are named after.
    pub app: &'a str,
}

/// Makes the release available, whole and in one step. `progress` hears how many bytes of how many
/// have been copied.
///
/// # Errors
/// With the reason why nothing has changed.
pub async fn publish_release(
    release_store: &ReleaseStore<'_>,
    publication: Publication,
    at: Timestamp,
    progress: impl FnMut(u64, u64) + Send + 'static,
) -> Result<Release, PublishFailure> {
    let file = file_name(release_store.app, &publication.version);
    let admit =
        |releases: &Releases| releases.admit(&publication.version, &file, publication.prerelease, publication.force);
    admit(&release_store.store.releases().await?)?;
    match publication.image {
        ImageSource::External { ref url, length, sha256 } => {
            let release = release(&publication, file.clone(), Some(url.clone()), (length, sha256), at);
            record(release_store.store, release).await
        }
        ImageSource::File(ref source) => {
            check(source)?;
            let place = Place::lock(release_store.folder, &file)?;
            let (source, partial) = (source.clone(), place.partial.clone());
            let copied = tokio::task::spawn_blocking(move || copy(&source, &partial, progress));
            let contents = copied.await.map_err(|why| place.unwritable(io::Error::other(why)))??;
            // Copying takes a while, and others may have published meanwhile.
            admit(&release_store.store.releases().await?)?;
            place.put_up()?;
            let release = release(&publication, file.clone(), None, contents, at);
            record(release_store.store, release).await
        }
    }
}

fn release(
    publication: &Publication,
    file: String,
    elsewhere: Option<String>,
    (length, sha256): (u64, Sha256),
    published: Timestamp,
) -> Release {
    Release {
        version: publication.version.clone(),
        file,
        elsewhere,
        length,
        sha256,
        notes: publication.notes.clone(),
        build: publication.build.clone(),
        signature: publication.signature.clone(),
        minimum_macos: publication.minimum_macos.clone(),
        prerelease: publication.prerelease,
        published,
        withdrawn: None,
    }
}

async fn record(store: &Store, release: Release) -> Result<Release, PublishFailure> {
    if store.add_release(&release).await? {
        Ok(release)
    } else {
        Err(RejectedRelease::VersionUsed(release.version).into())
    }
}

/// Whether the file is a whole disk image.
fn check(path: &Path) -> Result<(), PublishFailure> {
    let unreadable = |why| PublishFailure::Unreadable { path: path.to_owned(), why };
    let mut file = File::open(path).map_err(unreadable)?;
    let about = file.metadata().map_err(unreadable)?;
    if about.is_dir() {
        return Err(unreadable(io::ErrorKind::IsADirectory.into()));
    }
    let mut trailer = [0; TRAILER];
    if about.len() >= TRAILER as u64 {
        file.seek(SeekFrom::Start(about.len() - TRAILER as u64)).map_err(unreadable)?;
        file.read_exact(&mut trailer).map_err(unreadable)?;
    }
    disk_image::check(&trailer, about.len()).map_err(|why| PublishFailure::NotAnImage { path: path.to_owned(), why })
}

/// A place in the folder of releases that nobody else writes to as long as we hold it.
struct Place {
    folder: PathBuf,
    partial: PathBuf,
    whole: PathBuf,
    _lock: File,
}

impl Place {
    fn lock(folder: &Path, file: &str) -> Result<Self, PublishFailure> {
        let unwritable = |why| PublishFailure::Unwritable { path: folder.to_owned(), why };
        fs::create_dir_all(folder).map_err(unwritable)?;
        let lock = folder.join(".lock");
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(lock).map_err(unwritable)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => PublishFailure::Busy(folder.to_owned()),
            TryLockError::Error(why) => unwritable(why),
        })?;
        Ok(Self { folder: folder.to_owned(), partial: folder.join(".partial"), whole: folder.join(file), _lock: lock })
    }

    fn unwritable(&self, why: io::Error) -> PublishFailure {
        PublishFailure::Unwritable { path: self.folder.clone(), why }
    }

    /// Gives the copy its name. One that has the name already was never recorded: it is left from a
    /// publication that ended too soon.
    fn put_up(&self) -> Result<(), PublishFailure> {
        let put_up = || {
            fs::rename(&self.partial, &self.whole)?;
            File::open(&self.folder)?.sync_all()
        };
        put_up().map_err(|why| self.unwritable(why))
    }
}

/// What was not put up is of no use to anybody.
impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.partial);
    }
}

/// Copies the image to disk and says how long it is and what its digest is.
fn copy(from: &Path, to: &Path, mut progress: impl FnMut(u64, u64)) -> Result<(u64, Sha256), PublishFailure> {
    const PIECE: usize = 1024 * 1024;
    let unreadable = |why| PublishFailure::Unreadable { path: from.to_owned(), why };
    let unwritable = |why| PublishFailure::Unwritable { path: to.to_owned(), why };
    let mut source = File::open(from).map_err(unreadable)?;
    let length = source.metadata().map_err(unreadable)?.len();
    let mut copy = File::create(to).map_err(unwritable)?;
    let (mut piece, mut hasher, mut done) = (vec![0; PIECE], Sha256Hasher::default(), 0);
    loop {
        let count = match source.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(why) => return Err(unreadable(why)),
        };
        hasher.update(&piece[..count]);
        copy.write_all(&piece[..count]).map_err(unwritable)?;
        done += count as u64;
        progress(done, length);
    }
    if done != length {
        return Err(PublishFailure::Changed(from.to_owned()));
    }
    copy.sync_all().map_err(unwritable)?;
    Ok((length, hasher.finish()))
}
