//! The `User-Agent` with which an app asks for updates, and on the second line the query.
#![no_main]

use libfuzzer_sys::fuzz_target;
use porchlight::domain::releases::Releases;
use porchlight::domain::statistics::UpdateCheck;
use porchlight_fuzz::planted_panic;

fuzz_target!(|lines: &[u8]| {
    let mut parts = lines.splitn(2, |byte| *byte == b'\n');
    let user_agent = parts.next().unwrap_or_default();
    let query = parts.next().map(String::from_utf8_lossy);
    let check = UpdateCheck::parse(user_agent, query.as_deref(), &Releases::default());
    let names: Vec<_> = check.into_iter().flat_map(UpdateCheck::counts).map(|(_, name)| name).collect();
    for name in &names {
        let is_macos = name.parse::<u8>().is_ok_and(|major| (10..=45).contains(&major));
        assert!(is_macos || ["other", "arm64", "intel"].contains(&name.as_str()), "{name}");
    }
    planted_panic(!names.is_empty(), lines);
});
