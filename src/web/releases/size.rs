//! Sizes of disk images, for people.

/// Formats a size as the Finder does: a megabyte is a million bytes.
pub(crate) fn size(bytes: u64) -> String {
    let (unit, name) = match bytes {
        0..1_000 => return format!("{bytes} bytes"),
        1_000..1_000_000 => (1_000, "KB"),
        1_000_000..1_000_000_000 => (1_000_000, "MB"),
        _ => (1_000_000_000, "GB"),
    };
    let tenths = bytes / (unit / 10);
    match tenths % 10 {
        0 => format!("{} {name}", tenths / 10),
        rest => format!("{}.{rest} {name}", tenths / 10),
    }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_formatted_as_in_the_finder() {
        let sizes = [0, 999, 1_000, 1_250_000, 48_000_000, 1_073_741_824].map(size);
        assert_eq!(sizes, ["0 bytes", "999 bytes", "1 KB", "1.2 MB", "48 MB", "1 GB"]);
    }
}
