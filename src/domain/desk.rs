//! The desk, where makers do in a browser what they also do by command: their sessions, and what is recorded of their changes.
//!
//! Nothing that is recorded names a visitor.

use std::fmt;

use uuid::Uuid;

use super::letters::RandomToken;
use super::parse::word_enum;
use super::releases::Version;
use super::sha256::Sha256;
use super::text::quantity;
use super::time::Timestamp;
use super::tokens::CredentialName;

/// The last part of a link that signs a maker in.
#[derive(Clone, Debug)]
pub struct SignInToken(RandomToken<32>);

/// Where a cookie is good: one that was sent in clear on this machine opens nothing at the public URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieScope {
    OpsListener,
    PublicUrl,
}

/// What a browser keeps in a cookie: of a session, or of the browser that asked for a link by mail.
#[derive(Clone, Debug)]
pub struct CookieSecret(RandomToken<32>);

macro_rules! secrets {
    ($($type:ident),+) => {
        $(impl $type {
            pub const fn new(random: RandomToken<32>) -> Self {
                Self(random)
            }

            /// Returns `None` if `text` does not have the form of one.
            pub fn parse(text: &str) -> Option<Self> {
                RandomToken::parse(text).map(Self)
            }

            pub fn expose(&self) -> &str {
                self.0.as_str()
            }
        })+
    };
}
secrets!(SignInToken, CookieSecret);

impl SignInToken {
    /// What is stored.
    pub fn hash(&self) -> Sha256 {
        Sha256::of(self.expose().as_bytes())
    }
}

impl CookieSecret {
    /// What is stored.
    pub fn hash(&self, scope: CookieScope) -> Sha256 {
        let scope = match scope {
            CookieScope::OpsListener => "ops",
            CookieScope::PublicUrl => "public",
        };
        Sha256::of(format!("{scope}:{}", self.expose()).as_bytes())
    }
}

/// A maker who is signed in.
#[derive(Clone, Debug)]
pub struct Session {
    pub id: Uuid,
    pub name: CredentialName,
    pub started: Timestamp,
    /// Less exact than an hour.
    pub last_used: Timestamp,
}

/// Who changed something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    Command,
    Token(CredentialName),
    Session(CredentialName),
}

word_enum! {
    pub enum ActorKind {
        Command = "command",
        Token = "token",
        Session = "session",
    }
}

impl Actor {
    pub const fn kind(&self) -> ActorKind {
        match self {
            Self::Command => ActorKind::Command,
            Self::Token(_) => ActorKind::Token,
            Self::Session(_) => ActorKind::Session,
        }
    }

    pub const fn name(&self) -> Option<&CredentialName> {
        match self {
            Self::Command => None,
            Self::Token(name) | Self::Session(name) => Some(name),
        }
    }
}

/// What was changed: the text that follows who did it.
#[derive(Clone, Debug)]
pub enum Change {
    SignedIn,
    SignedOut,
    MadeSignInLink(CredentialName),
    EndedSession(CredentialName),
    EndedAllSessions,
    CreatedToken(CredentialName),
    RevokedToken(CredentialName),
    ReadSiteAgain,
    /// Messages of visitors: how many.
    MarkedAnswered(u64),
    MarkedUnanswered(u64),
    RetriedMessages(u64),
    DiscardedMessages(u64),
    SuppressedPerson,
    UnsuppressedPerson,
    ErasedPerson,
    ImportedPeople {
        added: u64,
        suppressed: u64,
    },
    PurgedSignups(u64),
    /// Recipients whose letters came back.
    SuppressedRecipients(u64),
    PublishedRelease(Version),
    EditedRelease(Version),
    WithdrewRelease(Version),
    RestoredRelease(Version),
    /// Letters, by their subject.
    StartedLetter(String),
    StoppedLetter(String),
    DeletedDraft,
    ContinuedLetter(String),
    ArchivedLetter(String),
    UnarchivedLetter(String),
    NamedApp(String),
    /// In the database that it was restored to.
    RestoredBackup,
    /// In the database that the data was moved to.
    MovedData,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SignedIn => f.write_str("signed in"),
            Self::SignedOut => f.write_str("signed out"),
            Self::MadeSignInLink(name) => write!(f, "made a link that signs {name} in"),
            Self::EndedSession(name) => write!(f, "ended a session of {name}"),
            Self::EndedAllSessions => f.write_str("ended all sessions"),
            Self::CreatedToken(name) => write!(f, "created the token {name}"),
            Self::RevokedToken(name) => write!(f, "revoked the token {name}"),
            Self::ReadSiteAgain => f.write_str("had the site read again"),
            Self::MarkedAnswered(number) => write!(f, "marked {} as answered", messages(*number)),
            Self::MarkedUnanswered(number) => write!(f, "marked {} as not answered", messages(*number)),
            Self::RetriedMessages(number) => write!(f, "had {} mailed again", messages(*number)),
            Self::DiscardedMessages(number) => write!(f, "discarded {}", messages(*number)),
            Self::SuppressedPerson => f.write_str("suppressed a person"),
            Self::UnsuppressedPerson => f.write_str("allowed mail to a person again"),
            Self::ErasedPerson => f.write_str("erased a person"),
            Self::ImportedPeople { added, suppressed } => {
                write!(f, "imported {}", quantity(*added, "person", "people"))?;
                match suppressed {
                    0 => Ok(()),
                    number => write!(f, " and {}", quantity(*number, "suppression", "suppressions")),
                }
            }
            Self::PurgedSignups(number) => write!(f, "removed {}", quantity(*number, "signup", "signups")),
            Self::SuppressedRecipients(number) => {
                let recipients = quantity(*number, "recipient whose letter", "recipients whose letters");
                write!(f, "suppressed {recipients} came back")
            }
            Self::PublishedRelease(version) => write!(f, "published release {version}"),
            Self::EditedRelease(version) => write!(f, "edited release {version}"),
            Self::WithdrewRelease(version) => write!(f, "withdrew release {version}"),
            Self::RestoredRelease(version) => write!(f, "put release {version} back"),
            Self::StartedLetter(subject) => write!(f, "started to send the letter “{subject}”"),
            Self::StoppedLetter(subject) => write!(f, "stopped the letter “{subject}”"),
            Self::DeletedDraft => f.write_str("deleted a draft of a letter"),
            Self::ContinuedLetter(subject) => write!(f, "went on sending the letter “{subject}”"),
            Self::ArchivedLetter(subject) => write!(f, "put the letter “{subject}” into the archive"),
            Self::UnarchivedLetter(subject) => write!(f, "took the letter “{subject}” out of the archive"),
            Self::NamedApp(name) => write!(f, "recorded {name} as the name of the app"),
            Self::RestoredBackup => f.write_str("restored a backup"),
            Self::MovedData => f.write_str("moved the data to this database"),
        }
    }
}

fn messages(number: u64) -> String {
    quantity(number, "message", "messages")
}

/// A change that was recorded.
#[derive(Clone, Debug)]
pub struct RecordedChange {
    pub id: Uuid,
    pub at: Timestamp,
    pub by: ActorKind,
    /// Of the token or session.
    pub name: Option<CredentialName>,
    pub what: String,
}
