//! An email address.
#![no_main]

use libfuzzer_sys::fuzz_target;
use porchlight::domain::mail::EmailAddress;
use porchlight_fuzz::planted_panic;

fuzz_target!(|text: &str| {
    let parsed = EmailAddress::parse(text);
    if let Ok(email) = &parsed {
        assert_eq!(email.as_typed(), text);
        // All spellings of an address have one key, so the key is a spelling of itself.
        assert_eq!(EmailAddress::parse(email.key()).as_ref().map(EmailAddress::key), Ok(email.key()));
        assert_eq!(EmailAddress::parse(&email.in_ascii()).as_ref().map(EmailAddress::key), Ok(email.key()));
        // Only compared, and never mailed to: `a.@example.com` may come of `a.+tag@example.com`.
        let mailbox = email.mailbox();
        assert_eq!(EmailAddress::from_stored(mailbox.as_str(), mailbox.as_str()).mailbox(), mailbox);
    }
    planted_panic(parsed.is_ok(), text.as_bytes());
});
