//! SHA-256 of bytes, in the forms in which it is written down.

use std::fmt::Write;

use sha2::{Digest as _, Sha256};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest([u8; 32]);

impl Digest {
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
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
        const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::with_capacity(44);
        for chunk in self.0.chunks(3) {
            let group = chunk.iter().fold(0, |group, byte| group << 8 | usize::from(*byte)) << (8 * (3 - chunk.len()));
            for place in 0..4 {
                let digit = ALPHABET[group >> (18 - 6 * place) & 63];
                text.push(if place > chunk.len() { '=' } else { char::from(digit) });
            }
        }
        text
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
    use super::Digest;

    #[test]
    fn digests_are_written_as_others_write_them() {
        let digest = Digest::of(b"abc");
        assert_eq!(digest.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(digest.short(8), "ba7816bf");
        assert_eq!(digest.base64(), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
    }
}
