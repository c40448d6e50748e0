//! Files in the age format, which the program `age` understands, too. Nobody can read them but the owner of the secret key.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::iter;
use std::path::Path;

use age::secrecy::ExposeSecret as _;
use age::x25519::{Identity, Recipient};
use age::{DecryptError, Decryptor, Encryptor};

use crate::actions::releases::read_image;
use crate::domain::sha256::Sha256;

/// Encrypts what `source` has to a file. Returns its length and SHA-256.
pub(super) fn encrypt(mut source: impl Read, recipient: &Recipient, file: &Path) -> io::Result<(u64, Sha256)> {
    let encryptor = Encryptor::with_recipients(iter::once(recipient as &dyn age::Recipient));
    let target = BufWriter::new(File::create(file)?);
    let mut encrypted = encryptor.map_err(io::Error::other)?.wrap_output(target)?;
    io::copy(&mut source, &mut encrypted)?;
    encrypted.finish()?.flush()?;
    read_image(File::open(file)?, |error| error, |_| Ok(()))
}

/// Appends what the file holds to `target`. Fails with a phrase.
pub(super) fn decrypt(file: &Path, key: &BackupKey, target: &mut File) -> Result<(), String> {
    let changed = || "it was changed or damaged after it was encrypted".to_owned();
    let source = BufReader::new(File::open(file).map_err(|error| error.to_string())?);
    let decryptor = Decryptor::new_buffered(source);
    let decrypted = decryptor.and_then(|decryptor| decryptor.decrypt(iter::once(&key.0 as &dyn age::Identity)));
    let mut decrypted = decrypted.map_err(|error| match error {
        DecryptError::NoMatchingKeys => "it was encrypted for another key".to_owned(),
        _ => changed(),
    })?;
    io::copy(&mut decrypted, target).map(drop).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => changed(),
        _ => error.to_string(),
    })
}

/// The secret key of backups, which no server has.
pub struct BackupKey(Identity);

impl std::fmt::Debug for BackupKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("BackupKey").field(&self.recipient().to_string()).finish()
    }
}

impl BackupKey {
    pub fn generate() -> Self {
        Self(Identity::generate())
    }

    /// Reads the first key of a file of `porchlight backup key` or of `age-keygen`.
    pub fn parse(text: &str) -> Option<Self> {
        text.lines().find_map(|line| line.trim().parse().ok()).map(Self)
    }

    /// The public key.
    pub fn recipient(&self) -> Recipient {
        self.0.to_public()
    }

    /// The text of a file that [`Self::parse`] and `age` read.
    pub fn file(&self) -> String {
        format!("# public key: {}\n{}\n", self.recipient(), self.0.to_string().expose_secret())
    }
}
