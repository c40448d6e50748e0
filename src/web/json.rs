//! JSON objects: the syntax of the whole body is checked before any member is read.
//!
//! Values stay raw until they are read, so a number of any size is accepted as a number.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::domain::limits;

/// Why a body is not a JSON object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotAnObject {
    NotUtf8,
    Empty,
    Malformed,
    TooDeep,
    LoneSurrogate,
    Array,
    OtherValue,
}

/// The members of an object in the order in which they were sent, including duplicates.
///
/// The caller decides how many there are, so nothing here may take quadratic time.
#[derive(Debug)]
pub(crate) struct Members<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self, NotAnObject> {
        let text = std::str::from_utf8(body).map_err(|_| NotAnObject::NotUtf8)?;
        if text.trim_ascii().is_empty() {
            return Err(NotAnObject::Empty);
        }
        let members = serde_json::from_str(text);
        if members.is_err() {
            serde_json::from_str::<&RawValue>(text).map_err(|_| NotAnObject::Malformed)?;
        }
        check_depth_and_surrogates(text)?;
        let is_array = text.trim_ascii_start().starts_with('[');
        members.map_err(|_| if is_array { NotAnObject::Array } else { NotAnObject::OtherValue })
    }

    /// The members of a value that is known to be well-formed. `None` if it is not an object.
    pub(crate) fn of(value: &'a RawValue) -> Option<Self> {
        value.get().starts_with('{').then(|| serde_json::from_str(value.get()).ok()).flatten()
    }

    /// The first member with this name.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find_map(|(member, value)| (member == name).then_some(*value))
    }

    pub(crate) fn has_duplicates(&self) -> bool {
        let mut names: Vec<_> = self.0.iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        names.windows(2).any(|pair| pair[0] == pair[1])
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Name<'a>(#[serde(borrow)] Cow<'a, str>);
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Name(name), value)) = map.next_entry()? {
                    members.push((name, value));
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(InOrder).map(Members)
    }
}

pub(crate) fn encode(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Decodes a string. `None` for any other value.
pub(crate) fn as_string(value: &RawValue) -> Option<String> {
    value.get().starts_with('"').then(|| serde_json::from_str(value.get()).ok()).flatten()
}

/// Checks what the raw parser leaves unchecked. `text` is otherwise well-formed.
fn check_depth_and_surrogates(text: &str) -> Result<(), NotAnObject> {
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut bytes = text.bytes().enumerate();
    while let Some((position, byte)) = bytes.next() {
        match byte {
            b'"' => in_string = !in_string,
            b'\\' => {
                if let Some((_, b'u')) = bytes.next() {
                    let unit = hex(text, position + 2);
                    let pair = text.get(position + 6..position + 8) == Some("\\u")
                        && (0xdc00..0xe000).contains(&hex(text, position + 8));
                    match unit {
                        0xd800..0xdc00 if pair => {
                            bytes.nth(9);
                        }
                        0xd800..0xe000 => return Err(NotAnObject::LoneSurrogate),
                        _ => {}
                    }
                }
            }
            b'{' | b'[' if !in_string => {
                depth += 1;
                if depth > limits::MAX_JSON_DEPTH {
                    return Err(NotAnObject::TooDeep);
                }
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

fn hex(text: &str, position: usize) -> u32 {
    text.get(position..position + 4).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(body: &str) -> Result<usize, NotAnObject> {
        Members::parse(body.as_bytes()).map(|members| members.0.len())
    }

    #[test]
    fn only_objects_are_accepted() {
        assert_eq!(parse(r#" {"a": 1, "b": [2], "a": null} "#), Ok(3));
        assert_eq!(parse("{}"), Ok(0));
        assert_eq!(parse(""), Err(NotAnObject::Empty));
        assert_eq!(parse(" \n"), Err(NotAnObject::Empty));
        assert_eq!(parse("[{}]"), Err(NotAnObject::Array));
        for other in ["null", "1", "\"x\"", "true"] {
            assert_eq!(parse(other), Err(NotAnObject::OtherValue), "{other}");
        }
        for broken in ["{", "{}{}", "{} x", "{'a':1}", "{\"a\":01}", "{\"a\":}", "{\"a\":\"\u{1}\"}", "\u{feff}{}"] {
            assert_eq!(parse(broken), Err(NotAnObject::Malformed), "{broken}");
        }
        assert_eq!(Members::parse(b"{\"a\":\"\xff\"}").unwrap_err(), NotAnObject::NotUtf8);
    }

    #[test]
    fn numbers_of_any_size_are_well_formed() {
        assert_eq!(parse(r#"{"a": 1e999, "b": 123456789012345678901234567890}"#), Ok(2));
    }

    #[test]
    fn nesting_is_limited_to_127_levels() {
        let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
        assert_eq!(parse(&nested(127)), Ok(1));
        assert_eq!(parse(&nested(128)), Err(NotAnObject::TooDeep));
        assert_eq!(parse(&nested(30_000)), Err(NotAnObject::TooDeep));
        assert_eq!(parse(&format!("{{\"a\":\"{}\"}}", "[".repeat(500))), Ok(1));
    }

    #[test]
    fn lone_surrogates_are_found_wherever_they_are() {
        for lone in [
            r#"{"a":"\ud800"}"#,
            r#"{"a":"\udc00"}"#,
            r#"{"\ud800":1}"#,
            r#"{"a":[["\ud83c x"]]}"#,
            r#"{"a":"\ud83c\u0041"}"#,
            r#"{"a":"\udfad\ud83c"}"#,
            r#"{"a":"\ud800\ud800\udc00"}"#,
        ] {
            assert_eq!(parse(lone), Err(NotAnObject::LoneSurrogate), "{lone}");
        }
        assert_eq!(parse(r#"{"a":"\ud83c\udfad \\ud800 é \u00e9"}"#), Ok(1));
    }

    #[test]
    fn duplicates_are_found_however_they_are_written() {
        let has_duplicates = |body: &str| Members::parse(body.as_bytes()).unwrap().has_duplicates();
        let many: Vec<_> = (0..6000).map(|number| format!("\"{number}\":1")).collect();
        let many = many.join(",");
        assert!(!has_duplicates("{}") && !has_duplicates(&format!("{{{many}}}")));
        assert!(has_duplicates(&format!("{{{many},\"5999\":2}}")) && has_duplicates(r#"{"a":1,"\u0061":2}"#));
    }

    proptest! {
        #[test]
        fn it_agrees_with_serde_about_what_is_an_object(body in r#"[\[{"a:1,}\] \\u8dc0]{0,24}"#) {
            let ours = Members::parse(body.as_bytes()).is_ok();
            let theirs = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&body).is_ok();
            prop_assert_eq!(ours, theirs);
        }
    }
}
