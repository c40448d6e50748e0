//! Downloads and joins of the waitlist, which need only an email address, and opt-ins to the monthly letter: where each came
//! from, and the wording that the person agreed to.

use std::borrow::Cow;

use uuid::Uuid;

use crate::domain::mail::EmailAddress;
use crate::domain::parse::word_enum;
use crate::domain::sha256::Sha256;
use crate::domain::text::Source;
use crate::domain::time::Timestamp;

/// A request for the app, with an optional opt-in to the monthly letter.
#[derive(Clone, Debug)]
pub struct DownloadRequest {
    pub email: EmailAddress,
    pub updates: bool,
    pub source: Option<Source>,
    pub via: Via,
    /// What the person agreed to with `updates`.
    pub wording: Wording,
}

/// A request to join the waitlist.
#[derive(Clone, Debug)]
pub struct WaitlistRequest {
    pub email: EmailAddress,
    pub source: Option<Source>,
    pub via: Via,
}

/// What was already stored for an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownBefore {
    pub downloaded: bool,
    pub joined: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignupKind {
    Download { opt_in: OptInRequest },
    Join,
}

/// One download or join.
#[derive(Clone, Debug)]
pub struct SignupRecord {
    pub id: Uuid,
    pub kind: SignupKind,
    pub email: EmailAddress,
    pub source: Option<Source>,
    pub via: Via,
    pub wording: Wording,
    pub at: Timestamp,
}

impl SignupRecord {
    /// Whether a mail has to be sent that asks for the confirmation.
    pub const fn awaits_confirmation(&self) -> bool {
        matches!(self.kind, SignupKind::Download { opt_in: OptInRequest::Pending })
    }

    /// Whether there is no stored id, or it is that of this signup.
    pub fn is_first(&self, stored: Option<&String>) -> bool {
        stored.is_none_or(|id| Uuid::parse_str(id) == Ok(self.id))
    }
}

word_enum! {
    /// The interface that a request came through.
    pub enum Via {
        /// The forms of the site, with JavaScript and without.
        Site = "site",
        /// The JSON endpoints, called by a program. Older versions recorded the site's script here too.
        Api = "api",
        Mcp = "mcp",
        /// A list that the makers imported.
        Import = "import",
        /// Recorded by another version, under a name that this one does not know.
        Unknown = "unknown",
    }
}

impl Via {
    /// Restores an interface from the database. A name that is not known does not make the row unreadable.
    pub fn from_stored(text: &str) -> Self {
        Self::parse(text).unwrap_or(Self::Unknown)
    }

    /// Whether a program sent the request, not a person on the site.
    pub const fn is_program(self) -> bool {
        matches!(self, Self::Api | Self::Mcp)
    }
}

/// Completes "you asked for one email a month through …" in the letter. It contains no text of the caller. `from_program`
/// is what [`Via::is_program`] was when the opt-in was recorded; older rows have none.
pub fn opt_in_origin(via: &str, from_program: Option<bool>) -> &'static str {
    match (Via::from_stored(via), from_program) {
        (Via::Site, _) => "the site",
        (Via::Mcp, _) | (Via::Api | Via::Unknown, Some(true)) => "a program",
        (Via::Import, _) => "an earlier list",
        // Recorded by a version that did not distinguish the site's script from other programs.
        (Via::Api | Via::Unknown, _) => "the site or a program",
    }
}

/// A person's consent to the monthly letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptIn {
    pub at: Timestamp,
    pub via: Via,
    pub source: Option<Source>,
    /// The number of the [`Wording`].
    pub wording: i64,
    /// When the person confirmed it by mail. `None`: it needed no confirmation, or waits for it.
    pub confirmed_at: Option<Timestamp>,
}

/// The text next to the opt-in, unless the site has words of its own or another language.
pub const OPT_IN_TEXT: &str = "Send me one email a month about what is new.";
const NUMBER_OF_OPT_IN_TEXT: i64 = 1;
/// The wording of an opt-in that was given outside this service.
pub const EXTERNAL_WORDING: i64 = 0;

/// A text next to the opt-in, so that each consent records what the person agreed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wording(Cow<'static, str>);

impl Wording {
    pub const BUILT_IN: Self = Self(Cow::Borrowed(OPT_IN_TEXT));

    pub fn new(text: &str) -> Self {
        if text == OPT_IN_TEXT { Self::BUILT_IN } else { Self(text.to_owned().into()) }
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    /// The same for the same text in every database. That of a text of the makers is a part of its hash.
    pub fn number(&self) -> i64 {
        if *self == Self::BUILT_IN {
            return NUMBER_OF_OPT_IN_TEXT;
        }
        i64::from_str_radix(&Sha256::of(self.0.as_bytes()).short(12), 16).unwrap_or_default()
    }
}

/// How a download asks for the monthly letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptInRequest {
    /// Not at all. An earlier opt-in stays.
    None,
    /// The opt-in counts at once.
    Immediate,
    /// The opt-in counts once the person has confirmed it.
    Pending,
}

/// An opt-in that waits for its confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingOptIn {
    pub since: Timestamp,
    /// When the person was asked by mail. `None`: not yet, or not at all, for example because the address is suppressed.
    pub asked_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_a_number_of_its_own() {
        assert_eq!(Wording::new(OPT_IN_TEXT).number(), 1);
        let [french, other] = ["Envoyez-moi un e-mail par mois.", "Yes."].map(|text| Wording::new(text).number());
        assert!(french > 1 && other > 1 && french != other);
    }

    #[test]
    fn the_origin_of_an_opt_in_is_told_by_its_interface() {
        for (via, from_program, origin) in [
            (Via::Site, Some(false), "the site"),
            (Via::Api, Some(true), "a program"),
            (Via::Mcp, Some(true), "a program"),
            (Via::Import, None, "an earlier list"),
            // Rows of older versions.
            (Via::Site, None, "the site"),
            (Via::Mcp, None, "a program"),
            (Via::Api, None, "the site or a program"),
        ] {
            assert_eq!(opt_in_origin(via.as_str(), from_program), origin, "{via:?} {from_program:?}");
        }
    }
}
