//! Finds the host that takes writes, if `database_url` names several.
//!
//! Each host is asked once a second, on a connection of its own. So a failover is noticed although no request writes, and a host
//! that answers nothing delays the answer of no other.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Executor, Row};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

/// How often a host is asked. After the first such time, one is chosen without waiting for the answers of all.
const INTERVAL: Duration = Duration::from_secs(1);
/// For a connection with TLS and a password, which takes several round trips.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// The connections to a host that did not answer for so long may be dead, although nobody closed them.
const UNRESPONSIVE_AFTER: Duration = Duration::from_secs(3);

/// `on` on a standby, and where the defaults of the server, the database or the role make it so.
const IS_READ_ONLY: &str = "SHOW transaction_read_only";
/// The timeline, which is the beginning of the name of the current WAL file. A server that is promoted begins a new one.
const TIMELINE: &str = "SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)";

/// The host to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SelectedHost {
    host: usize,
    /// Counts choices. Even if the same host is chosen again, the connections of the earlier choice may be dead.
    number: u64,
}

impl SelectedHost {
    pub(super) const FIRST: Self = Self { host: 0, number: 0 };

    /// Whether it was made at the same time as another choice, or later.
    pub(super) const fn is_as_late_as(self, other: Self) -> bool {
        self.number >= other.number
    }

    pub(super) const fn host(self) -> usize {
        self.host
    }
}

/// What a host answered that takes writes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HostStatus {
    /// Empty if the server does not tell it.
    timeline: String,
    /// Whether it did not answer for [`UNRESPONSIVE_AFTER`] before.
    was_away: bool,
}

/// What is known of the hosts.
struct HostStatuses {
    began: Instant,
    /// `None` for a host that does not answer or takes no writes.
    answers: Vec<Option<HostStatus>>,
    /// The hosts that were asked before.
    asked: HashSet<usize>,
    /// The newest timeline that a host had that takes writes.
    newest: String,
}

impl HostStatuses {
    fn new(hosts: usize) -> Self {
        Self { began: Instant::now(), answers: vec![None; hosts], asked: HashSet::new(), newest: String::new() }
    }

    /// Notes what a host answered and returns the choice.
    fn note(&mut self, host: usize, answer: Option<HostStatus>, current: Option<SelectedHost>) -> Option<SelectedHost> {
        let timeline = answer.as_ref().map_or("", |answer| &answer.timeline);
        if timeline > self.newest.as_str() {
            timeline.clone_into(&mut self.newest);
        }
        self.answers[host] = answer;
        self.asked.insert(host);
        if current.is_none() && self.asked.len() < self.answers.len() && self.began.elapsed() < INTERVAL {
            return None;
        }
        let next = next_choice(current, &self.newest, &self.answers);
        if let Some(answer) = &mut self.answers[host] {
            answer.was_away = false;
        }
        next
    }
}

/// Of the hosts that take writes, the one with the newest timeline is used: an older primary that does not know yet that another
/// was promoted could only lose what it is given. So a host with a timeline older than the `newest` one that was seen is not
/// chosen, even while the newer one does not answer. If no host answers so, the last choice stays: the servers refuse writes
/// themselves, and it may be this service that is cut off.
fn next_choice(current: Option<SelectedHost>, newest: &str, answers: &[Option<HostStatus>]) -> Option<SelectedHost> {
    let timeline = answers.iter().flatten().map(|answer| answer.timeline.as_str()).max();
    let Some(timeline) = timeline.filter(|timeline| *timeline >= newest) else { return current };
    let usable = |host: usize| answers.get(host)?.as_ref().filter(|answer| answer.timeline == timeline);
    if let Some(current) = current
        && usable(current.host).is_some_and(|answer| !answer.was_away)
    {
        return Some(current);
    }
    let number = current.map_or(0, |current| current.number + 1);
    let host = current.map(|current| current.host).filter(|host| usable(*host).is_some());
    let host = host.or_else(|| (0..answers.len()).find(|host| usable(*host).is_some()))?;
    Some(SelectedHost { host, number })
}

/// Asks the hosts until nobody uses them any more.
pub(super) async fn follow(choice: Weak<watch::Sender<Option<SelectedHost>>>, list: Vec<PgConnectOptions>) {
    let known = Mutex::new(HostStatuses::new(list.len()));
    let follow_host = async |number: usize, host: &PgConnectOptions| {
        let mut session = HostProbe::default();
        loop {
            let answer = session.ask(host).await;
            let Some(choice) = choice.upgrade() else { return };
            choose(&choice, &list, &known, (number, answer));
            drop(choice);
            sleep(INTERVAL).await;
        }
    };
    join_all(list.iter().enumerate().map(|(number, host)| follow_host(number, host))).await;
}

fn choose(
    choice: &watch::Sender<Option<SelectedHost>>,
    list: &[PgConnectOptions],
    known: &Mutex<HostStatuses>,
    (host, answer): (usize, Option<HostStatus>),
) {
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    choice.send_if_modified(|choice| {
        let next = known.note(host, answer, *choice);
        let changed = next != *choice;
        if changed && let Some(next) = next {
            tracing::info!(host = address(&list[next.host]), "selected database host");
        }
        *choice = next;
        changed
    });
}

/// The connection on which one host is asked.
#[derive(Default)]
struct HostProbe {
    connection: Option<PgConnection>,
    /// Since when the host does not answer.
    away_since: Option<Instant>,
}

impl HostProbe {
    /// Returns `None` if the host takes no writes, or did not answer in time. Then the connection is closed.
    async fn ask(&mut self, host: &PgConnectOptions) -> Option<HostStatus> {
        let away_since = *self.away_since.get_or_insert_with(Instant::now);
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => timeout(CONNECT_TIMEOUT, host.connect()).await.ok()?.ok()?,
        };
        let timeline = timeout(ANSWER_TIMEOUT, timeline_if_writable(&mut connection)).await.ok()?.ok()?;
        self.connection = Some(connection);
        self.away_since = None;
        Some(HostStatus { timeline: timeline?, was_away: away_since.elapsed() >= UNRESPONSIVE_AFTER })
    }
}

/// Returns `None` if the host takes no writes.
async fn timeline_if_writable(connection: &mut PgConnection) -> Result<Option<String>, sqlx::Error> {
    let read_only: String = connection.fetch_one(IS_READ_ONLY).await?.try_get(0)?;
    if read_only != "off" {
        return Ok(None);
    }
    // Some providers do not allow the question.
    Ok(Some(connection.fetch_one(TIMELINE).await.and_then(|row| row.try_get(0)).unwrap_or_default()))
}

pub(super) fn address(options: &PgConnectOptions) -> String {
    format!("{}:{}", options.get_host(), options.get_port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writable(timeline: &str) -> HostStatus {
        HostStatus { timeline: timeline.to_owned(), was_away: false }
    }

    fn returned(timeline: &str) -> HostStatus {
        HostStatus { timeline: timeline.to_owned(), was_away: true }
    }

    #[test]
    fn the_host_that_takes_writes_is_used() {
        let second = SelectedHost { host: 1, number: 1 };
        assert_eq!(
            next_choice(None, "", &[None, Some(writable("00000001"))]),
            Some(SelectedHost { host: 1, number: 0 })
        );
        assert_eq!(next_choice(Some(SelectedHost::FIRST), "", &[None, Some(writable("00000002"))]), Some(second));
        let first = Some(SelectedHost::FIRST);
        assert_eq!(next_choice(first, "", &[Some(writable("00000001")), None]), first);
    }

    #[test]
    fn of_two_that_take_writes_the_one_that_was_promoted_last_is_used() {
        let both = [Some(writable("00000009")), Some(writable("0000000A"))];
        assert_eq!(next_choice(Some(SelectedHost::FIRST), "", &both), Some(SelectedHost { host: 1, number: 1 }));
        let equal = [Some(returned("00000001")), Some(writable("00000001"))];
        let second = Some(SelectedHost { host: 1, number: 4 });
        assert_eq!(next_choice(second, "", &equal), second);
    }

    #[test]
    fn while_the_host_that_was_promoted_does_not_answer_no_older_primary_is_used() {
        let second = Some(SelectedHost { host: 1, number: 1 });
        assert_eq!(next_choice(second, "00000006", &[Some(writable("00000005")), None]), second);
    }

    #[test]
    fn a_host_that_was_away_gets_new_connections() {
        let answers = [Some(returned("00000001")), None];
        assert_eq!(next_choice(Some(SelectedHost::FIRST), "", &answers), Some(SelectedHost { host: 0, number: 1 }));
    }

    #[test]
    fn while_no_host_takes_writes_nothing_changes() {
        let first = Some(SelectedHost::FIRST);
        assert_eq!(next_choice(first, "", &[None, None]), first);
        assert_eq!(next_choice(None, "", &[None, None]), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_choice_waits_a_moment_for_the_answers_of_all_hosts() {
        let second = Some(SelectedHost { host: 1, number: 0 });
        let mut known = HostStatuses::new(2);
        assert_eq!(known.note(0, Some(writable("00000001")), None), None);
        assert_eq!(known.note(1, Some(writable("00000002")), None), second);

        let mut known = HostStatuses::new(2);
        assert_eq!(known.note(1, Some(writable("00000002")), None), None);
        tokio::time::advance(INTERVAL).await;
        assert_eq!(known.note(1, Some(writable("00000002")), None), second);
    }

    #[test]
    fn a_host_that_was_away_gets_new_connections_once() {
        let mut known = HostStatuses::new(2);
        let first = Some(SelectedHost::FIRST);
        assert_eq!(known.note(1, None, first), first);
        let again = known.note(0, Some(returned("00000001")), first);
        assert_eq!(again, Some(SelectedHost { host: 0, number: 1 }));
        assert_eq!(known.note(1, None, again), again);
    }
}
