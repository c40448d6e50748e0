//! Unsubscribing from the monthly letter: the token in the link, and the two kinds of request.

use super::link_token::LinkToken;

/// The path of all unsubscribe pages, up to the token.
pub const UNSUBSCRIBE_PATH: &str = "/unsubscribe/";

pub type UnsubscribeToken = LinkToken;

word_enum! {
    /// What the recipient of a letter asks for.
    pub enum UnsubscribeKind {
        /// No letters until the person opts in again.
        Unsubscribe = "unsubscribe",
        /// Another person entered the address: no letters ever, not even after an opt-in.
        NotMe = "not-me",
    }
}
