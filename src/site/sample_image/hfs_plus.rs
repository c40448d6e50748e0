//! The smallest volume of the Mac's own kind (HFS Plus) that holds one file.
//!
//! Apple's Technical Note 1150 describes every structure in here, in the same order.

use unicode_normalization::UnicodeNormalization as _;

use super::big_endian::BigEndian;

const BLOCK: usize = 4096;
const BLOCKS: usize = 256;

/// Where things are, in blocks. The header is in the first block, its copy in the last.
const BITMAP: Place = Place { first: 1, count: 1 };
const EXTENTS: Place = Place { first: 2, count: 1 };
const CATALOG: Place = Place { first: 3, count: 2 };
const ATTRIBUTES: Place = Place { first: 5, count: 1 };
const CONTENT: Place = Place { first: 6, count: 1 };
const FIRST_FREE: usize = 7;

/// Who is who in the catalog. Numbers below 16 are Apple's.
const ROOT_PARENT: usize = 1;
const ROOT: usize = 2;
const FILE: usize = 16;

const FOLDER_RECORD: usize = 1;
const FILE_RECORD: usize = 2;
const FOLDER_THREAD: usize = 3;
const FILE_THREAD: usize = 4;

/// The start of 2026, in seconds since 1904: every sample is the same.
const DATE: usize = 3_850_070_400;

struct Place {
    first: usize,
    count: usize,
}

/// A volume of that name with one file, which has to fit into one block.
pub(super) fn volume(name: &str, file_name: &str, content: &[u8]) -> Vec<u8> {
    assert!(content.len() <= BLOCK, "the file is longer than its block");
    let header = header();
    let catalog = tree(516, 6, &catalog(&unicode(name), &unicode(file_name), content.len()));
    let mut disk = vec![0; BLOCK * BLOCKS];
    for (place, bytes) in [
        (1024, header.as_slice()),
        (BITMAP.first * BLOCK, &bitmap()),
        (EXTENTS.first * BLOCK, &tree(10, 2, &[])),
        (CATALOG.first * BLOCK, &catalog),
        (ATTRIBUTES.first * BLOCK, &tree(266, 6, &[])),
        (CONTENT.first * BLOCK, content),
        (BLOCK * BLOCKS - 1024, &header),
    ] {
        disk[place..place + bytes.len()].copy_from_slice(bytes);
    }
    disk
}

fn header() -> Vec<u8> {
    BigEndian::default()
        .bytes(b"H+")
        .u16(4) // version
        .u32(0x100) // attributes: properly unmounted
        .bytes(b"10.0") // last mounted by
        .u32(0) // journal
        .u32(DATE) // created, modified, backed up, checked
        .u32(DATE)
        .u32(0)
        .u32(DATE)
        .u32(1) // files
        .u32(0) // folders besides the root
        .u32(BLOCK)
        .u32(BLOCKS)
        .u32(BLOCKS - FIRST_FREE - 1)
        .u32(FIRST_FREE)
        .u32(BLOCK) // by how much files grow
        .u32(BLOCK)
        .u32(FILE + 1) // next number in the catalog
        .u32(0) // times mounted
        .u64(1) // encodings of names: Roman
        .zeros(32) // for the Finder
        .bytes(&fork(&BITMAP, BITMAP.count * BLOCK))
        .bytes(&fork(&EXTENTS, EXTENTS.count * BLOCK))
        .bytes(&fork(&CATALOG, CATALOG.count * BLOCK))
        .bytes(&fork(&ATTRIBUTES, ATTRIBUTES.count * BLOCK))
        .zeros(80) // nothing to start a computer from
        .finish()
}

fn fork(place: &Place, length: usize) -> Vec<u8> {
    BigEndian::default()
        .u64(length)
        .u32(place.count * BLOCK) // by how much it grows
        .u32(place.count)
        .u32(place.first)
        .u32(place.count)
        .zeros(7 * 8) // further pieces
        .finish()
}

/// A bit a block, set where it is in use.
fn bitmap() -> Vec<u8> {
    let mut bitmap = vec![0; BLOCK];
    for block in (0..FIRST_FREE).chain([BLOCKS - 1]) {
        bitmap[block / 8] |= 0x80 >> (block % 8);
    }
    bitmap
}

/// A tree of at most one leaf: its header node, then the node with the records, if there are any.
fn tree(longest_key: usize, attributes: usize, records: &[Vec<u8>]) -> Vec<u8> {
    let leaves = usize::from(!records.is_empty());
    let header = BigEndian::default()
        .u16(leaves) // depth
        .u32(leaves) // root
        .u32(records.len())
        .u32(leaves) // first leaf, last leaf
        .u32(leaves)
        .u16(BLOCK) // size of a node
        .u16(longest_key)
        .u32(1 + leaves) // nodes
        .u32(0) // free ones
        .u16(0)
        .u32((1 + leaves) * BLOCK) // by how much it grows
        .u16(0) // kind of tree, comparison of keys
        .u32(attributes)
        .zeros(64)
        .finish();
    // A bit a node, set where it is in use, in all the room that the rest leaves.
    let mut used = vec![0; BLOCK - 256];
    used[0] = if leaves == 0 { 0x80 } else { 0xc0 };
    let mut tree = node(1, 0, &[header, vec![0; 128], used]);
    if leaves > 0 {
        tree.extend(node(0xff, 1, records));
    }
    tree
}

/// The records from the front, where each of them and the free room begin from the back.
fn node(kind: usize, height: usize, records: &[Vec<u8>]) -> Vec<u8> {
    let mut node = BigEndian::default().zeros(8).u8(kind).u8(height).u16(records.len()).u16(0).finish();
    let mut starts = vec![node.len()];
    for record in records {
        node.extend(record);
        starts.push(node.len());
    }
    let starts = starts.iter().rev().fold(BigEndian::default(), |starts, start| starts.u16(*start)).finish();
    node.resize(BLOCK - starts.len(), 0);
    [node, starts].concat()
}

/// The root and the file, each with the thread that leads from its number to its name; in the order
/// of their keys.
fn catalog(name: &[u8], file_name: &[u8], length: usize) -> [Vec<u8>; 4] {
    let nameless = unicode("");
    [
        [key(ROOT_PARENT, name), entry(FOLDER_RECORD, 0, 1, ROOT, 0o040_755)].concat(),
        [key(ROOT, &nameless), thread(FOLDER_THREAD, ROOT_PARENT, name)].concat(),
        [
            key(ROOT, file_name),
            entry(FILE_RECORD, 2, 0, FILE, 0o100_644), // flag 2: it has a thread
            fork(&CONTENT, length),
            vec![0; 80], // no resource fork
        ]
        .concat(),
        [key(FILE, &nameless), thread(FILE_THREAD, ROOT, file_name)].concat(),
    ]
}

fn key(parent: usize, name: &[u8]) -> Vec<u8> {
    BigEndian::default().u16(4 + name.len()).u32(parent).bytes(name).finish()
}

/// What folders and files have in common.
fn entry(kind: usize, flags: usize, items: usize, number: usize, mode: usize) -> Vec<u8> {
    const NOBODY: usize = 99;
    BigEndian::default()
        .u16(kind)
        .u16(flags)
        .u32(items)
        .u32(number)
        .u32(DATE) // created, content modified, attributes modified, accessed, backed up
        .u32(DATE)
        .u32(DATE)
        .u32(DATE)
        .u32(0)
        .u32(NOBODY) // owner, group: whoever looks at it
        .u32(NOBODY)
        .u16(0)
        .u16(mode)
        .u32(0)
        .zeros(32) // for the Finder
        .u32(0) // encoding of the name: Roman
        .u32(0)
        .finish()
}

fn thread(kind: usize, parent: usize, name: &[u8]) -> Vec<u8> {
    BigEndian::default().u16(kind).u16(0).u32(parent).bytes(name).finish()
}

/// A name: at most 255 units of UTF-16, letters and their accents apart, and how many they are.
fn unicode(name: &str) -> Vec<u8> {
    let mut units = Vec::new();
    for letter in name.nfd() {
        let letter = letter.encode_utf16(&mut [0; 2]).to_vec();
        if units.len() + letter.len() > 255 {
            break;
        }
        units.extend(letter);
    }
    let length = BigEndian::default().u16(units.len());
    units.iter().fold(length, |name, unit| name.u16(usize::from(*unit))).finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_takes_apart_letters_and_accents_and_has_at_most_255_units() {
        assert_eq!(unicode("é"), [0, 2, 0, 0x65, 3, 1]);
        assert_eq!(unicode(&"é".repeat(200))[..2], [0, 255]);
        assert_eq!(unicode(&"🎭".repeat(200))[..2], [0, 254], "half a letter is none");
    }
}
