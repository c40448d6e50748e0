//! A disk as a file that macOS opens (UDIF): the sectors in compressed chunks, a property list that
//! says which chunk holds which sectors, and a trailer that says where all of it is.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, Crc};

use super::big_endian::BigEndian;
use crate::domain::disk_image;

const SECTOR: usize = 512;
const CHUNK_SECTORS: usize = 512;
/// Kinds of chunks; the last one ends the table.
const RAW: usize = 1;
const ZLIB: usize = 0x8000_0005;
const END: usize = 0xffff_ffff;
/// The table is for the disk as a whole, not for one partition of it.
const WHOLE_DISK: usize = 0xffff_fffe;

pub(super) fn udif(disk: &[u8]) -> Vec<u8> {
    let mut data = Vec::new();
    let mut chunks = Vec::new();
    for (number, chunk) in disk.chunks(CHUNK_SECTORS * SECTOR).enumerate() {
        let (kind, stored) = match zlib(chunk) {
            Some(packed) if packed.len() < chunk.len() => (ZLIB, packed),
            _ => (RAW, chunk.to_vec()),
        };
        chunks.extend(entry(kind, number * CHUNK_SECTORS, chunk.len() / SECTOR, data.len(), stored.len()));
        data.extend(stored);
    }
    let sectors = disk.len() / SECTOR;
    chunks.extend(entry(END, sectors, 0, data.len(), 0));

    let list = property_list(&table(disk, sectors, &chunks));
    let trailer = trailer(&data, list.len(), sectors, crc32(&crc32(disk)));
    [data, list.into_bytes(), trailer].concat()
}

fn zlib(chunk: &[u8]) -> Option<Vec<u8>> {
    let mut writer = flate2::write::ZlibEncoder::new(Vec::new(), Compression::best());
    writer.write_all(chunk).ok()?;
    writer.finish().ok()
}

fn entry(kind: usize, sector: usize, sectors: usize, offset: usize, length: usize) -> Vec<u8> {
    BigEndian::default().u32(kind).u32(0).u64(sector).u64(sectors).u64(offset).u64(length).finish()
}

fn table(disk: &[u8], sectors: usize, chunks: &[u8]) -> Vec<u8> {
    let buffer_sectors = CHUNK_SECTORS + 8;
    BigEndian::default()
        .bytes(b"mish")
        .u32(1) // version
        .u64(0) // first sector
        .u64(sectors)
        .u64(0) // start of the data
        .u32(buffer_sectors)
        .u32(WHOLE_DISK)
        .zeros(24)
        .bytes(&checksum(crc32(disk)))
        .u32(chunks.len() / entry(END, 0, 0, 0, 0).len())
        .bytes(chunks)
        .finish()
}

fn property_list(table: &[u8]) -> String {
    const NAME: &str = "whole disk (Apple_HFS : 0)";
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>resource-fork</key>
  <dict>
    <key>blkx</key>
    <array>
      <dict>
        <key>Attributes</key><string>0x0050</string>
        <key>CFName</key><string>{NAME}</string>
        <key>Data</key><data>{data}</data>
        <key>ID</key><string>0</string>
        <key>Name</key><string>{NAME}</string>
      </dict>
    </array>
  </dict>
</dict>
</plist>
"#,
        data = STANDARD.encode(table)
    )
}

/// `master` is the checksum of the tables' checksums.
fn trailer(data: &[u8], list_length: usize, sectors: usize, master: [u8; 4]) -> Vec<u8> {
    BigEndian::default()
        .bytes(b"koly")
        .u32(4) // version
        .u32(disk_image::TRAILER)
        .u32(1) // flags: everything is in this one fork
        .u64(0) // running offset
        .u64(0) // data: where, and how long
        .u64(data.len())
        .u64(0) // resource fork: none
        .u64(0)
        .u32(1) // segment 1 of 1, without a name
        .u32(1)
        .zeros(16)
        .bytes(&checksum(crc32(data)))
        .u64(data.len()) // property list: where, and how long
        .u64(list_length)
        .zeros(120)
        .bytes(&checksum(master))
        .u32(2) // variant: a disk without partitions
        .u64(sectors)
        .zeros(12)
        .finish()
}

fn crc32(bytes: &[u8]) -> [u8; 4] {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum().to_be_bytes()
}

/// A checksum of type 2 (CRC-32) with 32 bits, in a field with room for longer ones.
fn checksum(crc: [u8; 4]) -> Vec<u8> {
    BigEndian::default().u32(2).u32(32).bytes(&crc).zeros(124).finish()
}
