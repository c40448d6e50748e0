//! Domain types. They are validated when they are created, so other layers need not check them again.
//!
//! Nothing here knows about HTTP, SQL, SMTP or the clock. Unless it says otherwise, an error is a clause such as "it is
//! not a version" that completes a sentence of its caller.

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

/// An enum whose variants are stored, and shown to programs, as these words.
macro_rules! word_enum {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)+
        }

        impl $name {
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|variant| variant.as_str() == text)
            }
        }
    };
}
pub(crate) use word_enum;

pub mod base_url;
pub mod bounce;
pub mod calendar;
pub mod client;
pub mod confirmation;
pub mod consent;
pub mod contact;
pub mod counts;
pub mod disk_image;
pub mod display_text;
pub mod dkim;
pub mod email;
pub mod front_matter;
pub mod host_name;
pub mod letter;
pub mod limits;
pub mod link_token;
pub mod mailbox;
pub mod maker_mail;
pub mod plural;
pub mod rate_limit;
pub mod reader;
pub mod reads;
pub mod relay;
pub mod release;
pub mod retention;
pub mod sha256;
pub mod signup;
pub mod suppression;
pub mod text;
pub mod time;
pub mod unsubscribe;
pub mod version;

/// Why a text was not parsed, where no caller needs to know more than the clause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(String);

impl Invalid {
    pub fn new(clause: impl Display) -> Self {
        Self(clause.to_string())
    }
}
