//! Colours as makers write them, and how well one is read on another.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::parse::Invalid;

/// An opaque colour in sRGB: red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub [u8; 3]);

impl Colour {
    pub const BLACK: Self = Self([0; 3]);
    pub const WHITE: Self = Self([255; 3]);

    /// Parses `#0a84ff` or `#08f`.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let invalid = || Invalid::new("write a colour as #0a84ff");
        let digits = text.strip_prefix('#').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let channels = match digits.ok_or_else(invalid)? {
            short if short.len() == 3 => short.chars().flat_map(|digit| [digit, digit]).collect(),
            long if long.len() == 6 => long.to_owned(),
            _ => return Err(invalid()),
        };
        let number = u32::from_str_radix(&channels, 16).map_err(|_| invalid())?;
        let [_, red, green, blue] = number.to_be_bytes();
        Ok(Self([red, green, blue]))
    }

    /// The mixture with this share of another colour.
    pub fn mix(self, other: Self, percent: u8) -> Self {
        let mixed = |place: usize| {
            let (from, to) = (u32::from(self.0[place]), u32::from(other.0[place]));
            let percent = u32::from(percent.min(100));
            u8::try_from((from * (100 - percent) + to * percent + 50) / 100).unwrap_or(u8::MAX)
        };
        Self([mixed(0), mixed(1), mixed(2)])
    }

    /// The relative luminance of WCAG 2: 0 for black, 1 for white.
    pub fn luminance(self) -> f64 {
        let linear = |channel: u8| match f64::from(channel) / 255.0 {
            low if low <= 0.040_45 => low / 12.92,
            high => ((high + 0.055) / 1.055).powf(2.4),
        };
        let [red, green, blue] = self.0.map(linear);
        0.2126f64.mul_add(red, 0.7152f64.mul_add(green, 0.0722 * blue))
    }

    /// The contrast ratio of WCAG 2, from 1 to 21.
    pub fn contrast(self, other: Self) -> f64 {
        let [one, two] = [self.luminance(), other.luminance()];
        (one.max(two) + 0.05) / (one.min(two) + 0.05)
    }
}

/// The shortest form that HTML and CSS know.
impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_short = self.0.iter().all(|channel| channel >> 4 == channel & 15);
        f.write_str("#")?;
        self.0.iter().try_for_each(
            |channel| {
                if is_short { write!(f, "{:x}", channel & 15) } else { write!(f, "{channel:02x}") }
            },
        )
    }
}

impl<'de> Deserialize<'de> for Colour {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl Serialize for Colour {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colour_has_three_or_six_digits() {
        for (text, shown) in [("#0a84ff", "#0a84ff"), ("#FFF", "#fff"), ("#112233", "#123"), ("#000", "#000")] {
            assert_eq!(Colour::parse(text).unwrap().to_string(), shown);
        }
        for wrong in ["", "#", "0a84ff", "#0a84f", "#0a84fff", "blue", "#ééé", "#+12", "#12345g"] {
            assert!(Colour::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn contrast_is_that_of_wcag() {
        let contrast = |one, two| Colour::parse(one).unwrap().contrast(Colour::parse(two).unwrap());
        for (one, two, expected) in
            [("#000", "#fff", 21.0), ("#777", "#fff", 4.478), ("#fff", "#767676", 4.542), ("#0a84ff", "#fff", 3.65)]
        {
            assert!((contrast(one, two) - expected).abs() < 0.01, "{one} on {two}: {}", contrast(one, two));
        }
    }

    #[test]
    fn a_mixture_goes_from_one_colour_to_the_other() {
        let (one, two) = (Colour([0, 100, 255]), Colour([100, 0, 255]));
        assert_eq!([one.mix(two, 0), one.mix(two, 100), one.mix(two, 25)], [one, two, Colour([25, 75, 255])]);
    }
}
