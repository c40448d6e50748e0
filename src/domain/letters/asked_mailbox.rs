//! How often a mailbox is asked to confirm an opt-in: in 30 days once under its plain address, and once under all variants of it
//! together. So nobody floods a mailbox with variants, and nobody blocks a person with one.

use crate::domain::mail::EmailAddress;
use crate::domain::parse::word_enum;

word_enum! {
    pub enum AskedSlot {
        /// An address without a tag; of the forms with dots that Gmail treats as one, the first.
        Plain = "plain",
        /// Any other address of the mailbox.
        Variant = "variant",
    }
}

/// Under which address a mailbox was asked.
#[derive(Clone, Debug)]
pub struct AskedMailbox {
    pub slot: AskedSlot,
    /// The hash of the address.
    pub address: String,
}

/// Returns the slot in which an address may be asked now, given those in which its mailbox was asked. `hash` is that of the
/// address. A mail that failed may be repeated.
pub fn slot_to_ask(email: &EmailAddress, hash: &str, asked: &[AskedMailbox], is_repeat: bool) -> Option<AskedSlot> {
    if let Some(own) = asked.iter().find(|asked| asked.address == hash) {
        return is_repeat.then_some(own.slot);
    }
    let slots: &[_] = if email.has_tag() { &[AskedSlot::Variant] } else { &[AskedSlot::Plain, AskedSlot::Variant] };
    slots.iter().copied().find(|slot| asked.iter().all(|asked| asked.slot != *slot))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks these one after another, and returns the slot of each.
    fn ask(addresses: &[&str]) -> Vec<Option<AskedSlot>> {
        let mut asked = Vec::new();
        let mut ask = |address: &&str| {
            let slot = slot_to_ask(&EmailAddress::parse(address).unwrap(), address, &asked, false)?;
            asked.push(AskedMailbox { slot, address: (*address).to_owned() });
            Some(slot)
        };
        addresses.iter().map(&mut ask).collect()
    }

    #[test]
    fn all_variants_together_are_asked_once_and_block_nobody() {
        let (plain, variant) = (Some(AskedSlot::Plain), Some(AskedSlot::Variant));
        assert_eq!(
            ask(&["a+1@b.example", "a+2@b.example", "a@b.example", "a@b.example"]),
            [variant, None, plain, None]
        );
        assert_eq!(ask(&["a@b.example", "a+1@b.example", "a@b.example"]), [plain, variant, None]);
        assert_eq!(
            ask(&["a.b@gmail.com", "ab@gmail.com", "a.b@gmail.com", "ab@googlemail.com"]),
            [plain, variant, None, None]
        );
    }

    #[test]
    fn a_mail_that_failed_is_repeated_in_its_slot() {
        let email = EmailAddress::parse("a+1@b.example").unwrap();
        let asked = [AskedMailbox { slot: AskedSlot::Variant, address: "own".to_owned() }];
        assert_eq!(slot_to_ask(&email, "own", &asked, true), Some(AskedSlot::Variant));
        assert_eq!(slot_to_ask(&email, "own", &asked, false), None);
        assert_eq!(slot_to_ask(&email, "other", &asked, true), None);
    }
}
