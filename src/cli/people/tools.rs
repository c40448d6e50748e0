//! The exports of other tools, as `people import` understands them: which columns each has, and what they mean.
//!
//! A person arrives opted in only if the file says so and has the time of the consent. Where a file says several things about a
//! person, the strictest one counts.

use std::time::Duration;

use super::cells::{Cells, Problem};
use crate::domain::people::{Person, SuppressionReason};
use crate::domain::signups::{EXTERNAL_WORDING, OptIn, Via};
use crate::domain::text::Source;
use crate::domain::time::Timestamp;

/// What a tool says about a person. The later one is stricter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    OptedIn,
    /// Not confirmed, or not known.
    NotOptedIn,
    Bounced,
    Unsubscribed,
}

/// The export of another tool. Columns are in lower case; where several are named for one meaning, the first one that has
/// something counts.
#[derive(Debug)]
pub(super) struct Tool {
    pub name: &'static str,
    /// A file with all these columns is an export of this tool.
    signature: &'static [&'static str],
    email: &'static [&'static str],
    /// Columns with a word about the person.
    states: &'static [&'static str],
    words: &'static [(Standing, &'static [&'static str])],
    /// Where there is no word.
    without_word: Standing,
    /// Columns with a time since which something holds.
    ended_at: &'static [(&'static str, Standing)],
    pub opted_in_at: &'static [&'static str],
    confirmed_at: &'static [&'static str],
    first_seen: &'static [&'static str],
    /// How the names of files begin that are about such people only.
    files: &'static [(&'static str, Standing)],
    /// What the makers should know before they import it.
    pub caution: &'static str,
}

const TOOLS: [Tool; 4] = [
    Tool {
        name: "Mailchimp",
        signature: &["member_rating", "optin_time"],
        email: &["email address", "email"],
        states: &[],
        words: &[],
        without_word: Standing::OptedIn,
        ended_at: &[("unsub_time", Standing::Unsubscribed), ("clean_time", Standing::Bounced)],
        opted_in_at: &["optin_time", "confirm_time"],
        confirmed_at: &["confirm_time"],
        first_seen: &["optin_time", "confirm_time", "last_changed"],
        files: &[
            ("unsubscribed_", Standing::Unsubscribed),
            ("cleaned_", Standing::Bounced),
            ("nonsubscribed_", Standing::NotOptedIn),
        ],
        caution: "Mailchimp has unsubscribed and cleaned people in files of their own: import these, too.",
    },
    Tool {
        name: "Buttondown",
        signature: &["creation_date"],
        email: &["email", "email_address"],
        states: &["subscriber_type", "type"],
        words: &[
            (
                Standing::OptedIn,
                &["regular", "premium", "gifted", "trialed", "unpaid", "churning", "past_due", "paused"],
            ),
            (Standing::NotOptedIn, &["unactivated", "churned", "upcoming"]),
            (Standing::Bounced, &["undeliverable"]),
            (Standing::Unsubscribed, &["unsubscribed", "removed", "blocked", "complained", "spammy"]),
        ],
        without_word: Standing::NotOptedIn,
        ended_at: &[("unsubscription_date", Standing::Unsubscribed), ("undeliverability_date", Standing::Bounced)],
        opted_in_at: &["subscription_date", "creation_date"],
        confirmed_at: &[],
        first_seen: &["creation_date", "subscription_date"],
        files: &[],
        caution: "",
    },
    Tool {
        name: "Ghost",
        signature: &["subscribed_to_emails"],
        email: &["email"],
        states: &["subscribed_to_emails"],
        words: &[(Standing::OptedIn, &["true"]), (Standing::Unsubscribed, &["false"])],
        without_word: Standing::NotOptedIn,
        ended_at: &[("deleted_at", Standing::Unsubscribed)],
        opted_in_at: &["created_at"],
        confirmed_at: &[],
        first_seen: &["created_at"],
        files: &[],
        caution: "",
    },
    Tool {
        name: "listmonk",
        signature: &["uuid", "status"],
        email: &["email"],
        states: &["status", "subscription_status"],
        words: &[
            (Standing::OptedIn, &["enabled", "confirmed"]),
            (Standing::NotOptedIn, &["unconfirmed"]),
            (Standing::Unsubscribed, &["disabled", "blocklisted", "blacklisted", "unsubscribed"]),
        ],
        without_word: Standing::NotOptedIn,
        ended_at: &[],
        opted_in_at: &["created_at"],
        confirmed_at: &[],
        first_seen: &["created_at"],
        files: &[],
        caution: "listmonk's file does not say who has confirmed, or left one of its lists: export one list, and of it those \
                  with the subscription status “confirmed”.",
    },
];

impl Tool {
    /// Recognizes a tool by the names of the columns.
    pub(super) fn of(names: &[String]) -> Option<&'static Self> {
        let has = |column: &&'static str| names.iter().any(|name| name == column);
        TOOLS.iter().find(|tool| tool.signature.iter().all(has) && tool.email.iter().any(has))
    }

    /// The columns that are read.
    pub(super) fn columns(&self) -> impl Iterator<Item = &'static str> {
        let lists = [self.signature, self.email, self.states, self.opted_in_at, self.confirmed_at, self.first_seen];
        lists.into_iter().flatten().copied().chain(self.ended_at.iter().map(|(column, _)| *column))
    }

    /// What the name of a file says about everybody in it.
    pub(super) fn standing(&self, file_name: &str) -> Standing {
        let named = self.files.iter().find(|(start, _)| file_name.starts_with(start));
        named.map_or(Standing::OptedIn, |(_, standing)| *standing)
    }

    pub(super) fn person(&self, cells: &Cells<'_>, of_file: Standing) -> Result<Person, Problem> {
        let email = cells.email(self.email.iter().find(|column| has_text(cells, column)).unwrap_or(&self.email[0]))?;
        let standing = self.standing_of(cells)?.max(of_file);
        let opted_in_at = first_time(cells, self.opted_in_at)?;
        let confirmed_at =
            first_time(cells, self.confirmed_at)?.filter(|at| opted_in_at.is_some_and(|first| *at > first));
        let opt_in = opted_in_at.filter(|_| standing == Standing::OptedIn).map(|at| OptIn {
            at,
            via: Via::Import,
            source: Source::parse(self.name).ok(),
            wording: EXTERNAL_WORDING,
            confirmed_at,
        });
        Ok(Person {
            email,
            first_seen: first_time(cells, self.first_seen)?.unwrap_or(cells.now),
            downloads: 0,
            waitlist: false,
            opt_in,
            pending: None,
            suppressed: match standing {
                Standing::OptedIn | Standing::NotOptedIn => None,
                Standing::Bounced => Some(SuppressionReason::NoMailbox),
                Standing::Unsubscribed => Some(SuppressionReason::Makers),
            },
            withdrew: false,
        })
    }

    fn standing_of(&self, cells: &Cells<'_>) -> Result<Standing, Problem> {
        let why = format!("is not a state that {} has", self.name);
        let known = |text: &str| {
            let text = text.to_lowercase();
            self.words.iter().find(|(_, words)| words.contains(&text.as_str())).map(|(standing, _)| *standing)
        };
        let mut by_word = None;
        for column in self.states {
            by_word = by_word.max(cells.parse(column, &why, known)?);
        }
        let ended = self.ended_at.iter().filter(|(column, _)| has_text(cells, column)).map(|(_, standing)| *standing);
        Ok(ended.fold(by_word.unwrap_or(self.without_word), Ord::max))
    }
}

fn has_text(cells: &Cells<'_>, column: &str) -> bool {
    !cells.trimmed(column).is_empty()
}

/// The time in the first of the columns that has one. Those who write times without their zone may be a day ahead.
fn first_time(cells: &Cells<'_>, columns: &[&str]) -> Result<Option<Timestamp>, Problem> {
    for column in columns {
        if let Some(time) = cells.parse(column, "is not a time such as 2026-11-15 12:00:00", parse_time)? {
            if time.before(Duration::from_hours(24)) > cells.now {
                return Err(cells.invalid(column, "is in the future"));
            }
            return Ok(Some(time.min(cells.now)));
        }
    }
    Ok(None)
}

/// Parses `2026-11-15`, RFC 3339, `2026-11-15 12:00:00` in UTC, and what Go prints, such as
/// `2026-11-15 12:00:00.123456 +0530 IST`.
fn parse_time(text: &str) -> Option<Timestamp> {
    if let Some(time) = Timestamp::parse(text) {
        return Some(time);
    }
    let mut words = text.split_ascii_whitespace();
    let (day, time, offset) = (words.next()?, words.next()?, words.next().unwrap_or("Z"));
    let offset = match offset.split_at_checked(3) {
        Some((hours, minutes)) if !minutes.starts_with(':') => format!("{hours}:{minutes}"),
        _ => offset.to_owned(),
    };
    Timestamp::parse(&format!("{day}T{time}{offset}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_every_tool_are_understood() {
        for (text, time) in [
            ("2018-06-12 07:53:28", "2018-06-12T07:53:28Z"),
            ("2024-01-15T10:00:00.000Z", "2024-01-15T10:00:00Z"),
            ("2024-01-05", "2024-01-05T00:00:00Z"),
            ("2024-01-05 10:00:00.123456+00:00", "2024-01-05T10:00:00Z"),
            ("2024-03-01 12:34:56.789012 +0000 UTC", "2024-03-01T12:34:56Z"),
            ("2024-03-01 12:34:56 +0530 IST", "2024-03-01T07:04:56Z"),
            ("2024-03-01 12:34:56 -0500 -0500", "2024-03-01T17:34:56Z"),
        ] {
            assert_eq!(parse_time(text).map(Timestamp::rfc3339).as_deref(), Some(time), "{text}");
        }
        for text in ["yesterday", "06/12/2018 07:53", "2018-06-12 07:53:28 é", "2024-13-01 00:00:00"] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }
}
