//! The unused parts of a page of a SQLite file: <https://www.sqlite.org/fileformat2.html#b_tree_pages>.

use std::ops::Range;

/// The file header, before the b-tree of the first page.
const FILE_HEADER: usize = 100;

/// Whether one of the lower-case texts is in an unused part, ignoring ASCII case.
pub(super) fn is_in_unused_parts(page: &[u8], number: i64, needles: &[Vec<u8>]) -> bool {
    unused_parts(page, number).into_iter().any(|part| {
        let bytes = page[part].to_ascii_lowercase();
        needles.iter().any(|needle| bytes.windows(needle.len().max(1)).any(|window| window == needle.as_slice()))
    })
}

/// Overwrites the unused parts with zeros, which does not change what the page means.
pub(super) fn clear_unused_parts(page: &mut [u8], number: i64) {
    for part in unused_parts(page, number) {
        page[part].fill(0);
    }
}

/// Returns the space between the cell pointers and the cells, and the free blocks between cells without their headers.
/// Other pages than those of b-trees have none: those of the freelist are overwritten when they are freed. All ranges are
/// inside the page, whatever it contains.
fn unused_parts(page: &[u8], number: i64) -> Vec<Range<usize>> {
    let start = if number == 1 { FILE_HEADER } else { 0 };
    let header = match page.get(start) {
        Some(2 | 5) => 12,
        Some(10 | 13) => 8,
        _ => return Vec::new(),
    };
    let read = |at: usize| {
        let bytes = page.get(at..at + 2)?;
        Some(usize::from(u16::from_be_bytes([bytes[0], bytes[1]])))
    };
    let (Some(mut block), Some(cells), Some(content)) = (read(start + 1), read(start + 3), read(start + 5)) else {
        return Vec::new();
    };
    // A page of 64 KiB without cells has the content start 65536, which is written as 0.
    let content = if content == 0 { page.len() } else { content };
    let mut parts: Vec<_> = std::iter::once(start + header + 2 * cells..content).collect();
    // The blocks are in ascending order, so a damaged chain ends, too.
    while let (true, Some(next), Some(size)) = (block != 0, read(block), read(block + 2)) {
        parts.push(block + 4..block + size);
        if next <= block {
            break;
        }
        block = next;
    }
    parts.retain(|part| part.start < part.end && part.end <= page.len());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A leaf of a table with one cell pointer, an unused part, a free block and cells from 60 on.
    fn leaf() -> Vec<u8> {
        let mut page = vec![b'x'; 100];
        page[..10].copy_from_slice(&[13, 0, 80, 0, 1, 0, 60, 0, 0, 60]);
        page[80..84].copy_from_slice(&[0, 0, 0, 12]);
        page
    }

    #[test]
    fn only_unused_parts_are_searched_and_cleared() {
        let needles = [b"ann@example.com".to_vec(), b"ada@x".to_vec()];
        for (at, is_unused) in [(10, true), (45, true), (50, false), (60, false), (84, true), (92, false)] {
            let text: &[u8] = if at == 84 || at == 92 { b"ADA@x" } else { b"Ann@Example.com" };
            let mut page = leaf();
            page[at..at + text.len()].copy_from_slice(text);
            assert_eq!(is_in_unused_parts(&page, 2, &needles), is_unused, "{at}");
            let before = page.clone();
            clear_unused_parts(&mut page, 2);
            assert!(!is_in_unused_parts(&page, 2, &needles));
            for (at, (before, after)) in before.iter().zip(&page).enumerate() {
                let cleared = (10..60).contains(&at) || (84..92).contains(&at);
                assert_eq!(*after, if cleared { 0 } else { *before }, "{at}");
            }
        }
    }

    #[test]
    fn a_page_of_another_kind_or_a_damaged_one_is_left_alone() {
        let mut overflow = leaf();
        overflow[0] = 0;
        assert!(unused_parts(&overflow, 2).is_empty());
        assert!(unused_parts(&[], 2).is_empty() && unused_parts(&[13, 0], 2).is_empty());
        let mut damaged = leaf();
        damaged[2..7].copy_from_slice(&[80, 255, 255, 255, 255]);
        damaged[80..84].copy_from_slice(&[0, 80, 255, 255]);
        assert!(unused_parts(&damaged, 2).is_empty());
    }
}
