//! Bytes as letters (RFC 4648).

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0, |group, byte| group << 8 | usize::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = ALPHABET[group >> (18 - 6 * place) & 63];
            text.push(if place > chunk.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

/// The bytes, if `text` is made of whole groups of four.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let (groups, rest) = text.as_bytes().as_chunks::<4>();
    let mut bytes = Vec::with_capacity(groups.len() * 3);
    for (place, group) in groups.iter().enumerate() {
        let digits = group.iter().take_while(|letter| **letter != b'=');
        let digits = digits.map(|letter| ALPHABET.iter().position(|digit| digit == letter));
        let digits = digits.collect::<Option<Vec<_>>>()?;
        let is_padded = digits.len() < 4;
        if digits.len() < 2 || group[digits.len()..].iter().any(|rest| *rest != b'=') {
            return None;
        }
        if is_padded && place + 1 < groups.len() {
            return None;
        }
        let number = (0..4).fold(0, |number, place| number << 6 | digits.get(place).copied().unwrap_or_default());
        let whole = [16, 8, 0].map(|shift| u8::try_from(number >> shift & 0xff).unwrap_or_default());
        bytes.extend_from_slice(&whole[..digits.len() - 1]);
    }
    rest.is_empty().then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_as_others_write_them() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).unwrap(), bytes.as_bytes());
        }
        assert_eq!(encode(&[0xfb, 0xff]), "+/8=");
        for wrong in ["Zg", "Z===", "Zg==Zg==", "Z g=", "Zm9", "=Zg="] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }
}
