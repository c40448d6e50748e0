//! The hosts of `database_url`, and which of them is used: the one that takes writes.
//!
//! `store/connection/selected_host.rs` asks the hosts. Pools look here which host they belong to, see
//! `store/connection/postgres_pool.rs`.

use std::fmt;
use std::sync::{Arc, OnceLock};

use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;
use tokio::sync::watch;

use super::postgres_tls::{self, PostgresTls};
use super::selected_host::{SelectedHost, address, follow};
use crate::domain::network::HostList;

/// The hosts of one `database_url`, at least one.
pub struct Hosts {
    list: Vec<PgConnectOptions>,
    pooler: bool,
    choice: Arc<watch::Sender<Option<SelectedHost>>>,
    is_followed: OnceLock<()>,
}

impl Hosts {
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
        let choice = Arc::new(watch::Sender::new((list.len() == 1).then_some(SelectedHost::FIRST)));
        Ok(Self { list, pooler, choice, is_followed: OnceLock::new() })
    }

    pub(super) fn choice(&self) -> watch::Receiver<Option<SelectedHost>> {
        self.choice.subscribe()
    }

    pub(super) fn options(&self, choice: SelectedHost) -> &PgConnectOptions {
        &self.list[choice.host()]
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
    pub(super) fn follow(&self) {
        if self.is_several() && self.is_followed.set(()).is_ok() {
            tokio::spawn(follow(Arc::downgrade(&self.choice), self.list.clone()));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

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
