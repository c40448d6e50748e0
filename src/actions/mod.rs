//! What the service does, one verb a file: floor 2. JSON, MCP, forms and commands all come here.
//!
//! An action takes checked values, applies the rules, and hands back a plain value or a `Failure`.
//! It knows neither HTTP nor SQL.

mod back_up;
mod backup;
mod catalogue;
mod erase_person;
mod failure;
mod forward_messages;
mod gathering;
mod glance;
mod import_people;
mod join_waitlist;
mod newest_image;
mod publish_release;
mod readiness;
mod restore;
mod send_contact;
mod send_letter;
mod start_download;
mod statistics;
mod suppress;
mod unsubscribe;
mod unsubscribe_tokens;
mod withdraw_release;

use uuid::{NoContext, Timestamp, Uuid};

use crate::clock::Clock;
use crate::domain::time::Moment;
use crate::store::{Store, Writer};

pub use back_up::{BackUpFailure, BackedUp, back_up};
pub use backup::Headway;
pub use catalogue::{Catalogue, Changes};
pub use erase_person::erase_person;
pub use failure::Failure;
pub use forward_messages::{Forwarder, Step};
pub use gathering::Gathering;
pub use glance::{Glance, glance};
pub use import_people::import_people;
pub use join_waitlist::join_waitlist;
pub use newest_image::{NewestImage, latest_path};
pub use publish_release::{Image, Publication, PublishFailure, Shelf, publish_release};
pub use readiness::{Part, missing_image, readiness};
pub use restore::{EmptyPlace, RestoreFailure, Restored, restore};
pub use send_contact::send_contact;
pub use send_letter::{LetterFailure, LetterSender, LetterStep};
pub use start_download::{StartedDownload, start_download};
pub use statistics::{LookBack, statistics};
pub use suppress::{suppress, unsuppress};
pub use unsubscribe::{can_unsubscribe, unsubscribe};
pub use unsubscribe_tokens::unsubscribe_tokens;
pub use withdraw_release::{WithdrawFailure, withdraw_release};

/// What actions need of the world.
#[derive(Clone, Debug)]
pub struct Service {
    pub store: Store,
    /// The same database, asked for the makers without taking a caller's connection.
    pub desk: Store,
    pub writer: Writer,
    pub clock: Clock,
    pub newest_image: NewestImage,
    pub catalogue: Catalogue,
    pub gathering: Gathering,
    /// Whether messages go on to the makers' mailbox.
    pub forwards: bool,
}

/// A name for something that happens at `at`; later ones sort behind earlier ones.
fn new_id(at: Moment) -> Uuid {
    let seconds = u64::try_from(at.unix_seconds()).unwrap_or_default();
    let nanos = u32::try_from(at.unix_millis().rem_euclid(1000)).unwrap_or_default() * 1_000_000;
    Uuid::new_v7(Timestamp::from_unix(NoContext, seconds, nanos))
}
