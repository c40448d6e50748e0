//! The answer of a name server.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use porchlight_fuzz::{Resolver, planted_panic};

static RESOLVER: LazyLock<Resolver> = LazyLock::new(Resolver::start);

fuzz_target!(|answer: &[u8]| {
    let (texts, _) = RESOLVER.look_up(answer);
    planted_panic(texts.is_ok_and(|texts| !texts.is_empty()), answer);
});
