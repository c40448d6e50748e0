//! How types of the domain are made from texts and words, and why a text was not parsed.

use std::fmt::Display;

/// For types that hold one text: they are shown as it is.
macro_rules! text_types {
    ($($type:ident),+) => {
        $(
            impl $type {
                pub fn as_str(&self) -> &str {
                    &self.0
                }
            }

            impl std::fmt::Display for $type {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str(&self.0)
                }
            }
        )+
    };
}

/// Texts from the database were valid when they were stored, and are not checked again: the limits may have changed since,
/// and a row must not become unreadable.
macro_rules! from_stored {
    ($($type:ident),+) => {
        $(impl $type {
            #[doc = "Restores a text from the database, without checking it again."]
            pub fn from_stored(text: impl Into<String>) -> Self {
                Self(text.into())
            }
        })+
    };
}

/// An enum whose variants are stored, and shown to programs, as these words. One that is not `pub` is never parsed.
macro_rules! word_enum {
    ($(#[$meta:meta])* pub enum $name:ident $variants:tt) => {
        $crate::domain::parse::word_enum! { @enum $(#[$meta])* (pub) $name $variants }

        impl $name {
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|variant| variant.as_str() == text)
            }
        }
    };
    ($(#[$meta:meta])* pub(crate) enum $name:ident $variants:tt) => {
        $crate::domain::parse::word_enum! { @enum $(#[$meta])* (pub(crate)) $name $variants }
    };
    (@enum $(#[$meta:meta])* ($visibility:vis) $name:ident { $($(#[$of:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility enum $name {
            $($(#[$of])* $variant,)+
        }

        impl $name {
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }
    };
}
pub(crate) use {from_stored, text_types, word_enum};

/// Why a text was not parsed, where no caller needs to know more than the clause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(String);

impl Invalid {
    pub fn new(clause: impl Display) -> Self {
        Self(clause.to_string())
    }
}
