//! Which of the hosts of `database_url` is used: the one that takes writes.
//!
//! If there are several hosts, a task asks each of them once a second, on a connection of its own. So a failover is noticed
//! although no request writes, and a host that answers nothing delays no answer of the others for longer than
//! [`ANSWER_TIMEOUT`]. Pools look here which host they belong to, see `store/postgres_pool.rs`.

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Executor, Row};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::postgres_tls::{self, PostgresTls};
use crate::domain::host_list::HostList;

/// How often the hosts are asked.
const INTERVAL: Duration = Duration::from_secs(1);
/// For connecting to a host, and for its answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// `on` on a standby, and where the defaults of the server, the database or the role make it so.
const IS_READ_ONLY: &str = "SHOW transaction_read_only";
/// The timeline, which is the beginning of the name of the current WAL file. A server that is promoted begins a new one.
const TIMELINE: &str = "SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)";

/// The SQLSTATE `insufficient_privilege`.
const NOT_ALLOWED: &str = "42501";

/// The hosts of one `database_url`, at least one.
pub struct Hosts {
    list: Vec<PgConnectOptions>,
    pooler: bool,
    choice: watch::Sender<Option<Choice>>,
    is_followed: OnceLock<()>,
}

/// The host to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    host: usize,
    /// Counts choices. Even if the same host is chosen again, the connections of the earlier choice may be dead.
    number: u64,
}

impl Choice {
    /// Whether it was made at the same time as another choice, or later.
    pub(super) const fn is_as_late_as(self, other: Self) -> bool {
        self.number >= other.number
    }
}

impl Hosts {
    /// # Errors
    /// With the reason why the URL is invalid.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        const FORM: &str = "it is not of the form postgres://user:password@host:5432/database";
        let (url, pooler) = without_pooler(url)?;
        let urls = HostList::split(&url).ok_or(FORM)?;
        if urls.has_gap() {
            return Err("it has a comma without a host beside it".to_owned());
        }
        let parse = |url: String| {
            let options: PgConnectOptions = url.parse().map_err(|_| FORM.to_owned())?;
            if options.get_host().contains(',') {
                return Err("its parameter `host` names several hosts; name them before the database, as in \
                            postgres://user:password@a:5432,b:5432/database"
                    .to_owned());
            }
            let options = postgres_tls::protect(options, &url)?;
            let options = options.application_name("porchlight").disable_statement_logging();
            // PgBouncer refuses the parameter, and no statement is kept.
            Ok(if pooler { options.extra_float_digits(None).statement_cache_capacity(0) } else { options })
        };
        let list: Vec<_> = urls.urls().map(parse).collect::<Result<_, String>>()?;
        // A single host is used without being asked.
        let choice = watch::Sender::new((list.len() == 1).then_some(Choice { host: 0, number: 0 }));
        Ok(Self { list, pooler, choice, is_followed: OnceLock::new() })
    }

    pub(super) fn choice(&self) -> watch::Receiver<Option<Choice>> {
        self.choice.subscribe()
    }

    /// Grows with every choice.
    pub(super) fn choice_number(&self) -> u64 {
        self.choice.borrow().map_or(0, |choice| choice.number)
    }

    pub(super) fn options(&self, choice: Choice) -> &PgConnectOptions {
        &self.list[choice.host]
    }

    /// The host that is used, such as `db2.example:5432`, if there are several and one of them takes writes.
    pub(super) fn in_use(&self) -> Option<String> {
        let choice = (*self.choice.borrow()).filter(|_| self.is_several())?;
        Some(address(self.options(choice)))
    }

    /// Whether the hosts are poolers that give a session only for a transaction.
    pub(super) const fn has_pooler(&self) -> bool {
        self.pooler
    }

    pub(super) fn is_several(&self) -> bool {
        self.list.len() > 1
    }

    /// What protects the connections to the host that is protected least.
    pub(super) fn tls(&self) -> Option<PostgresTls> {
        self.list.iter().map(PostgresTls::of).max()
    }

    /// Starts to ask the hosts, unless that was done before. It ends when nobody uses them any more.
    pub(super) fn follow(self: &Arc<Self>) {
        if self.is_several() && self.is_followed.set(()).is_ok() {
            let sessions = self.list.iter().map(|_| None).collect();
            tokio::spawn(follow(Arc::downgrade(self), sessions));
        }
    }

    /// `seen` is the newest timeline that a host had that takes writes.
    fn choose(&self, seen: &mut String, answers: &[Option<Answer>]) {
        self.choice.send_if_modified(|choice| {
            let next = next_choice(*choice, seen, answers);
            if let Some(newest) =
                answers.iter().flatten().map(|answer| &answer.timeline).max().filter(|one| *one > seen)
            {
                seen.clone_from(newest);
            }
            let changed = next != *choice;
            if changed && let Some(next) = next {
                tracing::info!(host = address(self.options(next)), "this database host takes writes and is used now");
            }
            *choice = next;
            changed
        });
    }
}

/// Names every host, without user and password.
impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let database = self.list.first().and_then(PgConnectOptions::get_database).unwrap_or("default");
        let addresses: Vec<_> = self.list.iter().map(address).collect();
        write!(f, "PostgreSQL, {database} at {}", addresses.join(", "))
    }
}

/// The connect options would show the password.
impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hosts({self})")
    }
}

/// Takes the parameter `pooler=transaction` out of the URL. The driver does not know it.
fn without_pooler(url: &str) -> Result<(String, bool), String> {
    let Some((start, parameters)) = url.split_once('?') else { return Ok((url.to_owned(), false)) };
    let (pooler, others): (Vec<_>, Vec<_>) = parameters.split('&').partition(|one| one.starts_with("pooler="));
    if pooler.iter().any(|one| *one != "pooler=transaction") {
        return Err(
            "its parameter `pooler` is not `transaction`, the only mode of a pooler that has to be named".to_owned()
        );
    }
    let mark = if others.is_empty() { "" } else { "?" };
    Ok((format!("{start}{mark}{}", others.join("&")), !pooler.is_empty()))
}

fn address(options: &PgConnectOptions) -> String {
    format!("{}:{}", options.get_host(), options.get_port())
}

/// What a host answered that takes writes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answer {
    timeline: String,
    /// Whether it was asked on a connection that was opened for it. The one before broke.
    is_new_session: bool,
}

/// Of the hosts that take writes, the one with the newest timeline is used: an older primary that does not know yet that another
/// was promoted could only lose what it is given. So a host with a timeline older than one that was `seen` is not chosen, even
/// while the newer one does not answer. If no host answers so, the last choice stays: the servers refuse writes themselves, and
/// it may be this service that is cut off.
fn next_choice(current: Option<Choice>, seen: &str, answers: &[Option<Answer>]) -> Option<Choice> {
    let newest = answers.iter().flatten().map(|answer| answer.timeline.as_str()).max();
    let Some(newest) = newest.filter(|newest| *newest >= seen) else { return current };
    let is_newest = |host: usize| answers.get(host)?.as_ref().filter(|answer| answer.timeline == newest);
    if let Some(current) = current
        && is_newest(current.host).is_some_and(|answer| !answer.is_new_session)
    {
        return Some(current);
    }
    let number = current.map_or(0, |current| current.number + 1);
    let host = current.map(|current| current.host).filter(|host| is_newest(*host).is_some());
    let host = host.or_else(|| (0..answers.len()).find(|host| is_newest(*host).is_some()))?;
    Some(Choice { host, number })
}

async fn follow(hosts: Weak<Hosts>, mut sessions: Vec<Option<PgConnection>>) {
    let mut seen = String::new();
    while let Some(hosts) = hosts.upgrade() {
        let asked = hosts.list.iter().zip(&mut sessions).map(|(host, session)| ask(host, session));
        let answers = join_all(asked).await;
        hosts.choose(&mut seen, &answers);
        drop(hosts);
        sleep(INTERVAL).await;
    }
}

/// Returns `None` if the host takes no writes, or did not answer in time. Then its connection is closed.
async fn ask(host: &PgConnectOptions, session: &mut Option<PgConnection>) -> Option<Answer> {
    let is_new_session = session.is_none();
    let kept = session.take();
    let answer = async {
        let mut connection = match kept {
            Some(connection) => connection,
            None => host.connect().await?,
        };
        if !takes_writes(&mut connection).await? {
            return Ok((connection, None));
        }
        let timeline = match connection.fetch_one(TIMELINE).await {
            Ok(row) => row.try_get(0)?,
            // Some providers do not allow the question.
            Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some(NOT_ALLOWED) => String::new(),
            Err(error) => return Err(error),
        };
        Ok::<_, sqlx::Error>((connection, Some(Answer { timeline, is_new_session })))
    };
    let (connection, answer) = timeout(ANSWER_TIMEOUT, answer).await.ok()?.ok()?;
    *session = Some(connection);
    answer
}

/// Whether the server takes writes in this session.
pub(super) async fn takes_writes(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let read_only: String = connection.fetch_one(IS_READ_ONLY).await?.try_get(0)?;
    Ok(read_only == "off")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Choice = Choice { host: 0, number: 0 };

    fn writable(timeline: &str) -> Answer {
        Answer { timeline: timeline.to_owned(), is_new_session: false }
    }

    fn reconnected(timeline: &str) -> Answer {
        Answer { timeline: timeline.to_owned(), is_new_session: true }
    }

    #[test]
    fn the_host_that_takes_writes_is_used() {
        assert_eq!(next_choice(None, "", &[None, Some(reconnected("00000001"))]), Some(Choice { host: 1, number: 0 }));
        assert_eq!(
            next_choice(Some(FIRST), "", &[None, Some(writable("00000002"))]),
            Some(Choice { host: 1, number: 1 })
        );
        assert_eq!(next_choice(Some(FIRST), "", &[Some(writable("00000001")), None]), Some(FIRST));
    }

    #[test]
    fn of_two_that_take_writes_the_one_that_was_promoted_last_is_used() {
        let both = [Some(writable("00000009")), Some(writable("0000000A"))];
        assert_eq!(next_choice(Some(FIRST), "", &both), Some(Choice { host: 1, number: 1 }));
        let equal = [Some(reconnected("00000001")), Some(writable("00000001"))];
        let second = Choice { host: 1, number: 4 };
        assert_eq!(next_choice(Some(second), "", &equal), Some(second));
    }

    #[test]
    fn while_the_host_that_was_promoted_does_not_answer_no_older_primary_is_used() {
        let second = Choice { host: 1, number: 1 };
        let answers = [Some(writable("00000005")), None];
        assert_eq!(next_choice(Some(second), "00000006", &answers), Some(second));
    }

    #[test]
    fn a_host_that_was_away_gets_new_connections() {
        assert_eq!(
            next_choice(Some(FIRST), "", &[Some(reconnected("00000001")), None]),
            Some(Choice { host: 0, number: 1 })
        );
    }

    #[test]
    fn while_no_host_takes_writes_nothing_changes() {
        assert_eq!(next_choice(Some(FIRST), "", &[None, None]), Some(FIRST));
        assert_eq!(next_choice(None, "", &[None, None]), None);
    }

    #[test]
    fn each_host_of_a_url_is_protected_as_if_it_were_alone() {
        let tls = |url: &str| Hosts::parse(url).map(|hosts| hosts.tls());
        assert_eq!(tls("postgres://me@127.0.0.1:1,[::1]:2/site"), Ok(Some(PostgresTls::Local)));
        assert_eq!(tls("postgres://me@127.0.0.1:1,db.example/site"), Ok(Some(PostgresTls::Verified)));
        assert_eq!(tls("postgres://me@127.0.0.1,db.example/site?sslmode=disable"), Ok(Some(PostgresTls::Off)));
        assert!(tls("postgres://me@127.0.0.1,db.example/site?sslmode=prefer").unwrap_err().contains("`sslmode`"));
    }

    #[test]
    fn a_list_with_a_gap_or_in_a_parameter_is_refused() {
        for url in
            ["postgres://me:secret@a,,b/site", "postgres://me:secret@a/site?host=a,b", "postgres://me:secret@a:x,b/s"]
        {
            let why = Hosts::parse(url).unwrap_err();
            assert!(!why.contains("secret"), "{why}");
        }
    }

    #[test]
    fn a_pooler_is_named_in_a_parameter_of_the_url() {
        let has_pooler = |url: &str| Hosts::parse(url).map(|hosts| hosts.has_pooler());
        assert_eq!(has_pooler("postgres://me@a,b/site?pooler=transaction&sslmode=require"), Ok(true));
        assert_eq!(has_pooler("postgres://me@a/site?pooler=transaction"), Ok(true));
        assert_eq!(has_pooler("postgres://me@a/site?sslmode=require"), Ok(false));
        assert!(has_pooler("postgres://me@a/site?pooler=session").unwrap_err().contains("`pooler`"));
    }

    #[test]
    fn hosts_are_named_without_user_and_password() {
        let hosts = Hosts::parse("postgres://me:secret@a:5432,b:5433/site").unwrap();
        assert_eq!(hosts.to_string(), "PostgreSQL, site at a:5432, b:5433");
        assert!(!format!("{hosts:?}").contains("secret"));
    }
}
