//! The file of `people import`.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use porchlight::cli::people::Rows;
use porchlight::domain::time::Timestamp;
use porchlight_fuzz::{planted_panic, temporary};

static FILE: LazyLock<PathBuf> = LazyLock::new(|| temporary("people.csv"));
/// 16 November 2026.
const NOW: Timestamp = Timestamp::from_unix_millis(1_794_787_200_000);

fuzz_target!(|bytes: &[u8]| {
    std::fs::write(&*FILE, bytes).expect("the file is written");
    let Ok(mut rows) = Rows::open(&FILE, NOW) else { return };
    let mut people = 0;
    while let Ok(Some(row)) = rows.next_row() {
        match row {
            Ok(person) => {
                assert!(person.first_seen <= NOW);
                people += 1;
            }
            Err(invalid) => assert!(!invalid.to_string().is_empty()),
        }
    }
    planted_panic(people > 0, bytes);
});
