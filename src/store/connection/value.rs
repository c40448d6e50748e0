//! The values of columns: how a Rust value is stored, and how a time is read.

use std::borrow::Cow;

use uuid::Uuid;

use super::failure::StoreFailure;
use crate::domain::time::Timestamp;

/// A parameter of a statement. `None` is NULL.
#[derive(Clone, Debug)]
pub(in crate::store) enum Value<'a> {
    Integer(Option<i64>),
    Text(Option<Cow<'a, str>>),
}

impl Value<'_> {
    pub(in crate::store) fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => *number,
            Self::Text(_) => None,
        }
    }

    pub(in crate::store) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => text.as_deref(),
            Self::Integer(_) => None,
        }
    }
}

/// How a Rust value is stored, and how one that may be missing is.
macro_rules! stored_as {
    ($($type:ty => $variant:ident($value:ident => $stored:expr),)+) => { $(
        impl<'a> From<$type> for Value<'a> {
            fn from($value: $type) -> Self {
                Self::$variant(Some($stored))
            }
        }

        impl<'a> From<Option<$type>> for Value<'a> {
            fn from(value: Option<$type>) -> Self {
                Self::$variant(value.map(|$value| $stored))
            }
        }
    )+ };
}

stored_as! {
    i64 => Integer(number => number),
    u64 => Integer(number => i64::try_from(number).unwrap_or(i64::MAX)),
    usize => Integer(number => i64::try_from(number).unwrap_or(i64::MAX)),
    bool => Integer(flag => flag.into()),
    Timestamp => Integer(time => time.unix_millis()),
    &'a str => Text(text => text.into()),
    &'a String => Text(text => text.into()),
    String => Text(text => text.into()),
    Uuid => Text(id => id.to_string().into()),
}

impl<DB: sqlx::Database> sqlx::Type<DB> for Timestamp
where
    i64: sqlx::Type<DB>,
{
    fn type_info() -> DB::TypeInfo {
        i64::type_info()
    }

    fn compatible(of: &DB::TypeInfo) -> bool {
        i64::compatible(of)
    }
}

impl<'r, DB: sqlx::Database> sqlx::Decode<'r, DB> for Timestamp
where
    i64: sqlx::Decode<'r, DB>,
{
    fn decode(value: DB::ValueRef<'r>) -> Result<Self, sqlx::error::BoxDynError> {
        i64::decode(value).map(Self::from_unix_millis)
    }
}

pub(in crate::store) fn parse_id(text: &str) -> Result<Uuid, StoreFailure> {
    Uuid::parse_str(text).map_err(|_| StoreFailure::invalid("an id"))
}
