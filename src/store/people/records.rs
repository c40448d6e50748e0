//! Reads everything that is stored about one address.

use serde::Serialize;

use crate::domain::letters::UnsubscribeToken;
use crate::domain::mail::EmailAddress;
use crate::domain::people::SuppressionReason;
use crate::domain::signups::{OptIn, Via, Wording};
use crate::domain::statistics::PeopleTotals;
use crate::domain::text::Source;
use crate::domain::time::Timestamp;
use crate::store::connection::{Store, StoreFailure, count, from_row_struct, values};
use crate::store::contact::InboxEntry;

/// Everything stored about one address.
#[derive(Clone, Debug)]
pub struct PersonRecord {
    /// As first typed.
    pub email: EmailAddress,
    pub first_seen: Option<Timestamp>,
    pub events: Vec<EventRecord>,
    pub consents: Vec<ConsentRecord>,
    pub messages: Vec<InboxEntry>,
    pub letters: Vec<LetterRecord>,
    pub token: Option<UnsubscribeToken>,
    /// Of the address or its mailbox, stored under a hash.
    pub suppression: Option<(Timestamp, SuppressionReason)>,
    /// The months with a letter to the mailbox, stored under its hash.
    pub months: Vec<String>,
    /// When the address was last asked to confirm an opt-in, stored under hashes of the address and of the mailbox.
    pub asked_at: Option<Timestamp>,
}

impl PersonRecord {
    /// Whether the person has an opt-in that counts, suppressed or not.
    pub fn is_opted_in(&self) -> bool {
        self.consents.iter().any(|consent| consent.is_current)
    }
}

from_row_struct! {
    /// A download or a join.
    #[derive(Clone, Debug, Serialize)]
    pub struct EventRecord {
        pub kind: String,
        pub at: Timestamp,
        pub via: String,
        pub source: Option<String>,
    }
}

#[derive(Clone, Debug)]
pub struct ConsentRecord {
    pub opt_in: OptIn,
    /// What the person agreed to. `None`: outside this service.
    pub text: Option<String>,
    /// Whether it is the current opt-in.
    pub is_current: bool,
    /// Whether it waits for its confirmation.
    pub is_pending: bool,
    /// When and how it was withdrawn.
    pub withdrawn: Option<(Timestamp, String)>,
}

/// The state of a letter to this person.
#[derive(Clone, Debug, Serialize)]
pub struct LetterRecord {
    pub letter: String,
    pub subject: String,
    pub state: String,
    pub at: Timestamp,
    pub tries: i64,
    #[serde(rename = "trouble")]
    pub last_error: Option<String>,
    /// The tag of the address that this copy is returned to.
    pub bounce_tag: Option<String>,
    pub bounce: Option<BounceRecord>,
}

/// A copy that was returned.
#[derive(Clone, Debug, Serialize)]
pub struct BounceRecord {
    pub at: Timestamp,
    /// The status code.
    pub status: String,
}

const SELECT_PERSON: &str = "SELECT email, first_seen_at, opt_in FROM people WHERE address = $1";

const SELECT_SIGNUPS: &str = "SELECT kind, at, via, source FROM signups WHERE address = $1 ORDER BY at, id";

const SELECT_CONSENTS: &str = "SELECT c.id, c.at, c.via, c.source, c.wording, t.text AS wording_text, c.confirmed_at, \
         w.at AS withdrawn_at, w.how, f.state AS confirmation \
     FROM consents c LEFT JOIN withdrawals w ON w.consent = c.id LEFT JOIN wordings t ON t.number = c.wording LEFT JOIN confirmations f ON f.consent = c.id \
         AND f.address = c.address WHERE c.address = $1 ORDER BY c.at, c.id";

const SELECT_LETTERS: &str = "SELECT r.letter, l.subject, r.state, r.at, r.tries, r.last_error, r.bounce_tag, r.bounce, r.bounced_at \
     FROM letter_recipients r JOIN letters l ON l.id = r.letter WHERE r.address = $1 AND l.started_at IS NOT NULL \
     ORDER BY l.started_at, l.id";

const SELECT_TOKEN: &str = "SELECT token FROM unsubscribe_tokens WHERE address = $1";

const SELECT_ASKED: &str = "SELECT at FROM asked_mailboxes WHERE mailbox = $1 AND address = $2";

const SELECT_MONTHS: &str = "SELECT month FROM letter_months WHERE hash = $1 ORDER BY month";

const COUNT_PEOPLE: &str = "SELECT COUNT(*), COUNT(opt_in), (SELECT COUNT(*) FROM suppressions) FROM people";

const COUNT_ON_WAITLIST: &str = "SELECT COUNT(*) FROM people WHERE first_join IS NOT NULL";

from_row_struct! {
    struct ConsentRow {
        id: String,
        at: Timestamp,
        via: String,
        source: Option<String>,
        wording: i64,
        wording_text: Option<String>,
        confirmed_at: Option<Timestamp>,
        confirmation: Option<String>,
        withdrawn_at: Option<Timestamp>,
        how: Option<String>,
    }
}

from_row_struct! {
    struct LetterRow {
        letter: String,
        subject: String,
        state: String,
        at: Timestamp,
        tries: i64,
        last_error: Option<String>,
        bounce_tag: Option<String>,
        bounce: Option<String>,
        bounced_at: Option<Timestamp>,
    }
}

impl Store {
    /// Counts rows, which takes a moment if there are many.
    pub async fn people_totals(&self) -> Result<PeopleTotals, StoreFailure> {
        let (people, opted_in, suppressed) = self.run(COUNT_PEOPLE, &[]).await?.one()?;
        Ok(PeopleTotals {
            people: count(people),
            opted_in: count(opted_in),
            pending: self.pending_opt_ins().await?,
            suppressed: count(suppressed),
        })
    }

    pub async fn people_on_waitlist(&self) -> Result<u64, StoreFailure> {
        let (people,) = self.run(COUNT_ON_WAITLIST, &[]).await?.one()?;
        Ok(count(people))
    }

    /// Returns everything stored about an address, which may be nothing.
    pub async fn person_record(&self, email: &EmailAddress) -> Result<PersonRecord, StoreFailure> {
        let (address, key) = (email.key(), self.address_hash_key().await?);
        let (hash, mailbox) = (key.hash(address), key.hash(&email.mailbox()));
        let person = self.run(SELECT_PERSON, values![address]).await?;
        let person: Option<(String, Timestamp, Option<String>)> = person.first()?;
        let consents: Vec<ConsentRow> = self.run(SELECT_CONSENTS, values![address]).await?.all()?;
        let messages = self.messages_of(address).await?;
        let letters: Vec<LetterRow> = self.run(SELECT_LETTERS, values![address]).await?.all()?;
        let token = self.run(SELECT_TOKEN, values![address]).await?.column::<String>()?.pop();
        let current = person.as_ref().and_then(|(_, _, opt_in)| opt_in.as_deref());
        let typed = match (&person, messages.first()) {
            (Some((typed, ..)), _) => EmailAddress::from_stored(typed, address),
            (None, Some(message)) => message.received.contact.email.clone(),
            (None, None) => email.clone(),
        };
        Ok(PersonRecord {
            email: typed,
            first_seen: person.as_ref().map(|(_, at, _)| *at),
            events: self.run(SELECT_SIGNUPS, values![address]).await?.all()?,
            consents: consents.into_iter().map(|row| consent_record(row, current)).collect(),
            messages,
            letters: letters.into_iter().map(letter_record).collect(),
            token: token.and_then(|token| UnsubscribeToken::parse(&token)),
            suppression: self.suppressions([email]).await?.get(email),
            months: self.run(SELECT_MONTHS, values![&mailbox]).await?.column()?,
            asked_at: self.run(SELECT_ASKED, values![&mailbox, &hash]).await?.column()?.pop(),
        })
    }
}

fn letter_record(row: LetterRow) -> LetterRecord {
    LetterRecord {
        letter: row.letter,
        subject: row.subject,
        state: row.state,
        at: row.at,
        tries: row.tries,
        last_error: row.last_error,
        bounce_tag: row.bounce_tag,
        bounce: row.bounce.zip(row.bounced_at).map(|(status, at)| BounceRecord { at, status }),
    }
}

fn consent_record(row: ConsentRow, current: Option<&str>) -> ConsentRecord {
    ConsentRecord {
        text: row
            .wording_text
            .or_else(|| (row.wording == Wording::BUILT_IN.number()).then(|| Wording::BUILT_IN.text().to_owned())),
        is_current: current == Some(row.id.as_str()),
        is_pending: row.confirmation.is_some_and(|state| state != "confirmed" && state != "declined"),
        opt_in: parse_opt_in(row.at, &row.via, row.source, row.wording, row.confirmed_at),
        withdrawn: row.withdrawn_at.zip(row.how),
    }
}

pub(super) fn parse_opt_in(
    at: Timestamp,
    via: &str,
    source: Option<String>,
    wording: i64,
    confirmed_at: Option<Timestamp>,
) -> OptIn {
    OptIn { at, via: Via::from_stored(via), source: source.map(Source::from_stored), wording, confirmed_at }
}
