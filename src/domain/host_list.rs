//! URLs that name several hosts, as `postgres://user@a:5432,b:5433/site` does.

/// A URL, split at its hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostList<'a> {
    /// Scheme, user and password.
    before: &'a str,
    hosts: &'a str,
    /// Path and parameters.
    after: &'a str,
}

impl<'a> HostList<'a> {
    /// Returns `None` if the text has no host part.
    pub fn split(url: &'a str) -> Option<Self> {
        let start = url.find("://")? + "://".len();
        let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |length| start + length);
        // A password may contain an @ that is not escaped.
        let start = url[start..end].rfind('@').map_or(start, |at| start + at + 1);
        Some(Self { before: &url[..start], hosts: &url[start..end], after: &url[end..] })
    }

    /// One URL for each host, in the order of the list.
    pub fn urls(self) -> impl Iterator<Item = String> {
        self.hosts.split(',').map(move |host| format!("{}{host}{}", self.before, self.after))
    }

    /// Whether there are several hosts.
    pub fn is_several(self) -> bool {
        self.hosts.contains(',')
    }

    /// Whether a comma is at the beginning, at the end, or next to another one.
    pub fn has_gap(self) -> bool {
        self.is_several() && self.hosts.split(',').any(str::is_empty)
    }

    /// This URL with the hosts of `other`.
    pub fn with_hosts_of(self, other: HostList<'_>) -> String {
        format!("{}{}{}", self.before, other.hosts, self.after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(url: &str) -> Vec<String> {
        HostList::split(url).unwrap().urls().collect()
    }

    #[test]
    fn each_host_gets_the_rest_of_the_url() {
        assert_eq!(
            urls("postgres://me:a,b@c@[::1]:5432,db.example:5433,10.0.0.3/site?sslmode=require,x"),
            [
                "postgres://me:a,b@c@[::1]:5432/site?sslmode=require,x",
                "postgres://me:a,b@c@db.example:5433/site?sslmode=require,x",
                "postgres://me:a,b@c@10.0.0.3/site?sslmode=require,x",
            ]
        );
        for one in ["postgres://me@db.example/site", "postgres:///site?host=/run", "postgres://db.example?a=b,c"] {
            assert_eq!(urls(one), [one]);
            assert!(!HostList::split(one).unwrap().is_several(), "{one}");
        }
        assert_eq!(HostList::split("db.example"), None);
    }

    #[test]
    fn a_gap_in_the_list_is_noticed() {
        for url in ["postgres://a,,b/site", "postgres://,a/site", "postgres://me@a,/site"] {
            assert!(HostList::split(url).unwrap().has_gap(), "{url}");
        }
        for url in ["postgres://a,b/site", "postgres:///site?host=/run", "postgres://a"] {
            assert!(!HostList::split(url).unwrap().has_gap(), "{url}");
        }
    }
}
