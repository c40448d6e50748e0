//! DKIM signatures (RFC 6376), of headers and body in their relaxed forms.
//!
//! A signature is made of the bytes that are sent, so it knows nothing of how a mail is composed.
//!
//! Private keys are RSA or Ed25519, in PEM files with PKCS#8. `ring` signs. It generates no RSA keys, so that is done by `rsa`,
//! which never signs here: its private operations take a time that depends on the key (RUSTSEC-2023-0071).

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
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

use crate::config::{DkimSettings, InvalidSettings};
use crate::domain::limits::DKIM_RSA_BITS;
use crate::domain::mail::{DkimRecord, DkimSelector, KeyKind};
use crate::domain::sha256::Sha256;
use crate::domain::time::Timestamp;

/// The headers that are signed if a mail has them. RFC 8058 requires that those of one-click unsubscribe are.
const SIGNED_HEADERS: [&str; 13] = [
    "from",
    "to",
    "subject",
    "date",
    "message-id",
    "reply-to",
    "auto-submitted",
    "list-id",
    "list-unsubscribe",
    "list-unsubscribe-post",
    "mime-version",
    "content-type",
    "content-transfer-encoding",
];
/// Where lines of the signature are folded.
const MAX_LINE_CHARS: usize = 72;

/// Signs mail from one domain with one key.
#[derive(Debug)]
pub struct DkimSigner {
    selector: DkimSelector,
    domain: String,
    key: DkimKey,
}

impl DkimSigner {
    /// Reads the key.
    pub fn from_settings(dkim: &DkimSettings, domain: &str) -> Result<Self, InvalidSettings> {
        Ok(Self { selector: dkim.selector.clone(), domain: domain.to_owned(), key: DkimKey::read(&dkim.key)? })
    }

    /// The DNS name of the record with the public key.
    pub fn record_name(&self) -> String {
        self.selector.record_name(&self.domain)
    }

    pub const fn record(&self) -> &DkimRecord {
        self.key.record()
    }

    /// Returns the header `DKIM-Signature` of a mail, with its line ending. Mail is ASCII.
    pub(super) fn signature(&self, mail: &[u8], at: Timestamp) -> Option<String> {
        let mail = String::from_utf8_lossy(mail);
        let (headers, body) = mail.split_once("\r\n\r\n").unwrap_or((&mail, ""));
        let headers: Vec<_> = SIGNED_HEADERS.iter().filter_map(|name| relaxed_header(headers, name)).collect();
        let names = headers.iter().filter_map(|header| header.split_once(':')).map(|(name, _)| name);
        // Each name once more than it occurs, so that nobody can add a second header of that name.
        let names: Vec<_> = names.clone().chain(names).collect();
        let unsigned = format!(
            "DKIM-Signature: v=1; a={}-sha256; c=relaxed/relaxed;\r\n d={}; s={};\r\n t={};\r\n h={};\r\n bh={};\r\n b=",
            self.record().kind.as_str(),
            self.domain,
            self.selector,
            at.unix_seconds(),
            fold(names.join(":").split_inclusive(':')),
            STANDARD.encode(Sha256::of(relaxed_body(body).as_bytes()).bytes()),
        );
        let signed = format!("{}{}", headers.concat(), relaxed(&unsigned));
        let signature = STANDARD.encode(self.key.sign(signed.as_bytes())?);
        Some(format!("{unsigned}{}\r\n", fold(signature.split_inclusive(|_| true))))
    }
}

/// Joins the pieces, with a line break before each that does not fit into its line.
fn fold<'a>(pieces: impl Iterator<Item = &'a str>) -> String {
    let (mut folded, mut length) = (String::new(), 0);
    for piece in pieces {
        if length + piece.len() > MAX_LINE_CHARS {
            folded += "\r\n ";
            length = 0;
        }
        folded += piece;
        length += piece.len();
    }
    folded
}

/// Returns the header of this name in its relaxed form, with its line ending (RFC 6376, section 3.4.2).
fn relaxed_header(headers: &str, name: &str) -> Option<String> {
    let mut lines = headers.split("\r\n").skip_while(|line| {
        let field_name = line.split_once(':').map(|(name, _)| name);
        !field_name.is_some_and(|other| other.eq_ignore_ascii_case(name))
    });
    let first = lines.next()?;
    let folded = lines.take_while(|line| line.starts_with([' ', '\t']));
    let header = std::iter::once(first).chain(folded).collect::<Vec<_>>().join("\r\n");
    Some(relaxed(&header) + "\r\n")
}

/// Returns a header in its relaxed form, without its line ending.
fn relaxed(header: &str) -> String {
    let (name, value) = header.split_once(':').unwrap_or((header, ""));
    let words: Vec<_> = value.split_ascii_whitespace().collect();
    format!("{}:{}", name.to_ascii_lowercase(), words.join(" "))
}

/// Returns a body in its relaxed form (RFC 6376, section 3.4.4).
fn relaxed_body(body: &str) -> String {
    let is_space = |c| matches!(c, ' ' | '\t');
    let mut relaxed = String::with_capacity(body.len() + 2);
    for line in body.split("\r\n") {
        let mut after_space = false;
        for c in line.trim_end_matches(is_space).chars() {
            if !is_space(c) {
                relaxed.push(c);
            } else if !after_space {
                relaxed.push(' ');
            }
            after_space = is_space(c);
        }
        relaxed += "\r\n";
    }
    let length = relaxed.trim_end_matches("\r\n").len();
    relaxed.truncate(length);
    if !relaxed.is_empty() {
        relaxed += "\r\n";
    }
    relaxed
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 6376, section 3.4.5.
    #[test]
    fn headers_and_body_have_their_relaxed_forms() {
        let headers = "A: X\r\nB : Y\t\r\n\tZ  \r\nC:";
        assert_eq!(relaxed_header(headers, "a").unwrap(), "a:X\r\n");
        assert_eq!(relaxed("B: Y\t\r\n\tZ  "), "b:Y Z");
        assert_eq!(relaxed_header(headers, "c").unwrap(), "c:\r\n");
        assert_eq!(relaxed_header(headers, "d"), None);
        assert_eq!(relaxed_body(" C \r\nD \t E\r\n\r\n\r\n"), " C\r\nD E\r\n");
        assert_eq!(relaxed_body("a\r\n\r\n \r\nb"), "a\r\n\r\n\r\nb\r\n", "with or without a last line ending");
        for empty in ["", "\r\n", "\r\n\r\n", " \r\n\t"] {
            assert_eq!(relaxed_body(empty), "");
        }
    }

    #[test]
    fn a_header_is_not_found_inside_another() {
        let headers = "Subject: From: x\r\n to: y\r\nX-From: z\r\nFROM: a";
        assert_eq!(relaxed_header(headers, "from").unwrap(), "from:a\r\n");
        assert_eq!(relaxed_header(headers, "to"), None);
    }
}
