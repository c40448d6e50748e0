//! SHA-256 of bytes, in the forms in which it is written down.

use std::fmt::Write;

use sha2::Digest as _;

use super::base64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sha256([u8; 32]);

impl Sha256 {
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// Reads it back from 64 hexadecimal digits.
    #[must_use]
    pub fn from_hex(hex: &str) -> Option<Self> {
        let digits = hex.as_bytes();
        if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, place) in bytes.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&hex[place..place + 2], 16).ok()?;
        }
        Some(Self(bytes))
    }

    #[must_use]
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    #[must_use]
    pub fn hex(&self) -> String {
        hex(&self.0)
    }

    /// The first `length` digits: enough to tell the files of one site apart.
    #[must_use]
    pub fn short(&self, length: usize) -> String {
        self.hex().chars().take(length).collect()
    }

    #[must_use]
    pub fn base64(&self) -> String {
        base64::encode(&self.0)
    }
}

/// Takes in bytes piece by piece.
#[derive(Clone, Debug, Default)]
pub struct Sha256Hasher(sha2::Sha256);

impl Sha256Hasher {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    #[must_use]
    pub fn finish(self) -> Sha256 {
        Sha256(self.0.finalize().into())
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_written_as_others_write_them() {
        let digest = Sha256::of(b"abc");
        assert_eq!(digest.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(digest.short(8), "ba7816bf");
        assert_eq!(digest.base64(), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
    }

    #[test]
    fn a_digest_is_the_same_in_pieces_and_read_back() {
        let mut hasher = Sha256Hasher::default();
        hasher.update(b"a");
        hasher.update(b"bc");
        assert_eq!(hasher.finish(), Sha256::of(b"abc"));
        assert_eq!(Sha256::from_hex(&Sha256::of(b"abc").hex()), Some(Sha256::of(b"abc")));
        for wrong in ["", "ab", &"g".repeat(64), &"é".repeat(32)] {
            assert_eq!(Sha256::from_hex(wrong), None, "{wrong}");
        }
    }
}
