//! Chooses between singular and plural forms.

/// Returns `singular` if `number` is 1, otherwise `plural`.
pub const fn plural_form<'a>(number: u64, singular: &'a str, plural: &'a str) -> &'a str {
    if number == 1 { singular } else { plural }
}

/// Returns the number followed by the matching form, as in `1 person` or `2 people`.
pub fn quantity(number: impl Into<u64>, singular: &str, plural: &str) -> String {
    let number = number.into();
    format!("{number} {}", plural_form(number, singular, plural))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        assert_eq!(quantity(1_u64, "person", "people"), "1 person");
        assert_eq!(quantity(0_u64, "person", "people"), "0 people");
        assert_eq!(quantity(2_u32, "person", "people"), "2 people");
    }
}
