//! The file with the settings.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use porchlight::config::{RawSettings, ResolvedSetting, Settings, redacted};
use porchlight_fuzz::{planted_panic, temporary};

static FILE: LazyLock<PathBuf> = LazyLock::new(|| temporary("porchlight.toml"));

fuzz_target!(|bytes: &[u8]| {
    std::fs::write(&*FILE, bytes).expect("the file is written");
    let arguments = RawSettings::default();
    for (name, setting) in ResolvedSetting::resolve(Some(&FILE), &arguments).unwrap_or_default() {
        let _ = redacted(&name, &setting.value);
    }
    let settings = Settings::load(Some(&FILE), &arguments);
    planted_panic(settings.is_ok_and(|settings| settings.base_url.is_some()), bytes);
});
