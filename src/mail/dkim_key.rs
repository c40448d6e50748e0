//! Private keys for DKIM: RSA and Ed25519, in PEM files with PKCS#8.
//!
//! `ring` signs. It generates no RSA keys, so that is done by `rsa`, which never signs here: its private operations take
//! a time that depends on the key (RUSTSEC-2023-0071).

use std::path::Path;

use ring::error::KeyRejected;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair};
use rsa::RsaPrivateKey;
use rsa::pkcs8::der::Encode as _;
use rsa::pkcs8::der::asn1::BitStringRef;
use rsa::pkcs8::spki::SubjectPublicKeyInfo;
use rsa::pkcs8::{
    AlgorithmIdentifierRef, EncodePrivateKey as _, LineEnding, ObjectIdentifier, PrivateKeyInfo, SecretDocument,
};
use rsa::rand_core::OsRng;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;

use crate::config::InvalidSettings;
use crate::domain::limits::DKIM_RSA_BITS;
use crate::domain::mail::{DkimRecord, KeyKind};
use crate::domain::sha256::Sha256;

/// RFC 8410.
const ED25519: AlgorithmIdentifierRef<'_> =
    AlgorithmIdentifierRef { oid: ObjectIdentifier::new_unwrap("1.3.101.112"), parameters: None };
const PEM_LABEL: &str = "PRIVATE KEY";

/// A key that can sign, with its record.
#[derive(Debug)]
pub struct DkimKey {
    pair: KeyPair,
    record: DkimRecord,
}

#[derive(Debug)]
enum KeyPair {
    Rsa(RsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InvalidDkimKey {
    #[error(
        "it has no private key in PKCS#8 PEM format; `porchlight mail key` makes one, and `openssl pkcs8 -topk8 -nocrypt` \
         converts other formats"
    )]
    Format,
    #[error("its key is neither RSA nor Ed25519; `porchlight mail key` makes one")]
    Kind,
    #[error(
        "its RSA key does not have 2048, 3072 or 4096 bits, or is damaged ({0}); `porchlight mail key` makes another"
    )]
    Rsa(KeyRejected),
    #[error("its Ed25519 key is damaged ({0}); `porchlight mail key --ed25519` makes another")]
    Ed25519(KeyRejected),
}

#[derive(Debug, thiserror::Error)]
pub enum GenerateFailure {
    #[error("the system's random generator failed: {0}")]
    Random(#[from] getrandom::Error),
    #[error("the key could not be generated: {0}")]
    Rsa(#[from] rsa::Error),
    #[error("the key could not be encoded: {0}")]
    Encoding(#[from] rsa::pkcs8::Error),
}

impl DkimKey {
    pub fn read(path: &Path) -> Result<Self, InvalidSettings> {
        let invalid = |reason| InvalidSettings::new("dkim_key", reason);
        let pem = std::fs::read(path).map_err(|error| {
            invalid(format!("{} could not be read: {error}; `porchlight mail key` makes one", path.display()))
        })?;
        Self::from_pem(&pem).map_err(|why| invalid(format!("{}: {why}", path.display())))
    }

    pub fn from_pem(pem: &[u8]) -> Result<Self, InvalidDkimKey> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem).map_err(|_| InvalidDkimKey::Format)?;
        let der = der.secret_pkcs8_der();
        let info = PrivateKeyInfo::try_from(der).map_err(|_| InvalidDkimKey::Format)?;
        if info.algorithm.oid == rsa::pkcs1::ALGORITHM_OID {
            let pair = RsaKeyPair::from_pkcs8(der).map_err(InvalidDkimKey::Rsa)?;
            let public_key = subject_public_key_info(pair.public_key().as_ref()).ok_or(InvalidDkimKey::Format)?;
            Ok(Self { pair: KeyPair::Rsa(pair), record: DkimRecord::new(KeyKind::Rsa, public_key) })
        } else if info.algorithm.oid == ED25519.oid {
            // OpenSSL writes keys without the public key, which could be checked.
            let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).map_err(InvalidDkimKey::Ed25519)?;
            let record = DkimRecord::new(KeyKind::Ed25519, pair.public_key().as_ref().to_vec());
            Ok(Self { pair: KeyPair::Ed25519(pair), record })
        } else {
            Err(InvalidDkimKey::Kind)
        }
    }

    pub const fn record(&self) -> &DkimRecord {
        &self.record
    }

    /// Signs as the algorithms `rsa-sha256` and `ed25519-sha256` do. Returns `None` if `ring` fails, which it does for no
    /// key that it has accepted.
    pub(super) fn sign(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        match &self.pair {
            KeyPair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), bytes, &mut signature).ok()?;
                Some(signature)
            }
            // RFC 8463, section 3: the hash is what is signed.
            KeyPair::Ed25519(pair) => Some(pair.sign(Sha256::of(bytes).bytes()).as_ref().to_vec()),
        }
    }
}

/// Generates a key, as PEM.
pub fn generate_dkim_key(kind: KeyKind) -> Result<String, GenerateFailure> {
    let document = match kind {
        KeyKind::Rsa => RsaPrivateKey::new(&mut OsRng, DKIM_RSA_BITS)?.to_pkcs8_der()?,
        KeyKind::Ed25519 => {
            // The seed, as an OCTET STRING.
            let mut key = [4, 32].into_iter().chain([0; 32]).collect::<Vec<u8>>();
            getrandom::fill(&mut key[2..])?;
            SecretDocument::try_from(PrivateKeyInfo::new(ED25519, &key))?
        }
    };
    Ok(document.to_pem(PEM_LABEL, LineEnding::LF).map_err(rsa::pkcs8::Error::from)?.to_string())
}

/// Returns `None` if the key is too large for DER.
fn subject_public_key_info(key: &[u8]) -> Option<Vec<u8>> {
    let key = BitStringRef::from_bytes(key).ok()?;
    SubjectPublicKeyInfo { algorithm: rsa::pkcs1::ALGORITHM_ID, subject_public_key: key }.to_der().ok()
}
