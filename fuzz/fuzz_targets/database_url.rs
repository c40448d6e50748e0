//! The setting `database_url`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use porchlight::config::redacted;
use porchlight::store::Database;
use porchlight_fuzz::planted_panic;

fuzz_target!(|url: &str| {
    let _ = redacted("database_url", url);
    let parsed = Database::parse(url);
    if let Ok(database) = &parsed {
        let _ = (database.to_string(), database.tls(), database.has_several_hosts());
    }
    planted_panic(matches!(parsed, Ok(Database::Postgres(_))), url.as_bytes());
});
