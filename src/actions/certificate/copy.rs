//! A copy of the certificate in a file, so that an instance starts with https while its database server is unavailable.
//!
//! The copy has the chain and the private key, never the account at the authority. It is read only at a start, and deleted if the
//! settings that it was ordered for have changed. Backups do not contain it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::domain::rate_limit::Hourly;
use crate::domain::time::Timestamp;
use crate::store::make_private_folder;
use crate::tls::SiteCertificate;

#[derive(Debug)]
pub(super) struct CertificateCopy {
    path: PathBuf,
    /// The first line of the file, which says what the certificate is for.
    settings: String,
    failure: Hourly,
}

/// The beginning of the first line, by which the file is recognized before it is deleted.
const MARK: &str = "# Porchlight's copy of the certificate";

fn path_in(folder: &Path) -> PathBuf {
    folder.join("acme-certificate.pem")
}

/// Deletes the copy of a certificate that is no longer ordered.
pub fn delete_certificate_copy(folder: &Path) {
    let path = path_in(folder);
    if !fs::read(&path).is_ok_and(|text| text.starts_with(MARK.as_bytes())) {
        return;
    }
    if let Err(error) = fs::remove_file(&path) {
        tracing::warn!(%error, path = %path.display(), "cannot delete the copy of a certificate");
    }
}

impl CertificateCopy {
    /// Deletes a copy that was made for other settings.
    pub(super) fn open(folder: &Path, email: &str, directory: &str, hosts: &str) -> Self {
        let settings = format!("{MARK} of {hosts}, from {directory}, for {email}");
        let copy = Self { path: path_in(folder), settings, failure: Hourly::default() };
        if copy.read().is_none() {
            delete_certificate_copy(folder);
        }
        copy
    }

    pub(super) fn read(&self) -> Option<SiteCertificate> {
        let text = fs::read_to_string(&self.path).ok()?;
        let (settings, pem) = text.split_once('\n')?;
        let pem = Some(pem.as_bytes()).filter(|_| settings == self.settings)?;
        SiteCertificate::from_pem(pem, pem).ok()
    }

    /// Replaces the file, unless it has the same content. A failure is logged once an hour: the service can do without.
    pub(super) fn write(&self, chain: &str, private_key: &str, now: Timestamp) {
        let text = format!("{}\n{}\n{}\n", self.settings, chain.trim_end(), private_key.trim_end());
        if fs::read(&self.path).is_ok_and(|present| present == text.as_bytes()) {
            return;
        }
        if let Err(error) = self.replace(&text)
            && self.failure.is_due(now)
        {
            tracing::warn!(
                %error, path = %self.path.display(),
                "cannot write a copy of the certificate; without it there is no https after a start without the database"
            );
        }
    }

    fn replace(&self, text: &str) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        make_private_folder(folder)?;
        // Only its owner can read a temporary file, whatever the umask.
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        Ok(())
    }
}
