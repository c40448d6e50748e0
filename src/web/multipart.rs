//! Several parts of a file in one answer (`multipart/byteranges`, RFC 9110, section 14.6).
//!
//! Makes what is sent around the parts, and never sees the parts themselves.

use super::ranges::ByteRange;

#[derive(Debug)]
pub(crate) struct Multipart {
    pub content_type: String,
    /// Of the whole answer.
    pub content_length: u64,
    /// Each with what is sent before it.
    pub parts: Vec<(String, ByteRange)>,
    /// Sent after the last.
    pub end: String,
}

impl Multipart {
    /// Frames parts of a file of `total` bytes. `boundary` is a word that the file does not contain.
    pub(crate) fn new(content_type: &str, boundary: &str, ranges: &[ByteRange], total: u64) -> Self {
        let mut line_end = "";
        let mut parts = Vec::with_capacity(ranges.len());
        for range in ranges {
            let content_range = range.content_range(total);
            let head = format!(
                "{line_end}--{boundary}\r\nContent-Type: {content_type}\r\nContent-Range: {content_range}\r\n\r\n"
            );
            parts.push((head, *range));
            line_end = "\r\n";
        }
        let end = format!("{line_end}--{boundary}--\r\n");
        let lengths = parts.iter().map(|(head, range)| head.len() as u64 + range.length());
        Self {
            content_type: format!("multipart/byteranges; boundary={boundary}"),
            content_length: lengths.sum::<u64>() + end.len() as u64,
            parts,
            end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::ranges::{Asked, asked};
    use proptest::prelude::*;

    #[test]
    fn several_parts_are_framed_as_the_standard_shows() {
        let framed = Multipart::new(
            "application/pdf",
            "EDGE",
            &[ByteRange { first: 500, last: 999 }, ByteRange { first: 7000, last: 7999 }],
            8000,
        );
        assert_eq!(framed.content_type, "multipart/byteranges; boundary=EDGE");
        let heads: Vec<_> = framed.parts.iter().map(|(head, _)| head.as_str()).collect();
        assert_eq!(
            heads,
            [
                "--EDGE\r\nContent-Type: application/pdf\r\nContent-Range: bytes 500-999/8000\r\n\r\n",
                "\r\n--EDGE\r\nContent-Type: application/pdf\r\nContent-Range: bytes 7000-7999/8000\r\n\r\n",
            ]
        );
        assert_eq!(framed.end, "\r\n--EDGE--\r\n");
    }

    proptest! {
        #[test]
        fn an_answer_is_as_long_as_it_says(
            file in proptest::collection::vec(any::<u8>(), 300..400),
            ends in proptest::collection::btree_set(0..300_u64, 4..16),
            boundary in "[a-z0-9]{1,70}",
        ) {
            let ends: Vec<_> = ends.into_iter().collect();
            let ranges: Vec<_> = ends.chunks_exact(2).rev().map(|ends| format!("{}-{}", ends[0], ends[1])).collect();
            let total = file.len() as u64;
            let Asked::Parts(parts) = asked(&format!("bytes={}", ranges.join(",")), total) else {
                panic!("parts were asked for: {ranges:?}");
            };
            let framed = Multipart::new("application/x-apple-diskimage", &boundary, &parts, total);
            let mut body: Vec<u8> = Vec::new();
            for (head, part) in &framed.parts {
                body.extend(head.as_bytes());
                let (first, last) = (usize::try_from(part.first).unwrap(), usize::try_from(part.last).unwrap());
                body.extend(&file[first..=last]);
            }
            body.extend(framed.end.as_bytes());
            prop_assert_eq!(framed.content_length, body.len() as u64);
        }
    }
}
