//! How many connections the listeners may have open, given how many files the process may open.

use rustix::process::{Resource, getrlimit};

use crate::domain::limits::{MAX_CONNECTIONS, MAX_OPS_CONNECTIONS};
use crate::domain::plural::quantity;

/// Files that are kept free for the database, the mail server, the site and the standard streams.
const RESERVED_FILES: usize = 64;
/// A connection is a file, and may have a disk image open.
const FILES_PER_CONNECTION: usize = 2;
/// Below this many connections, there is a hint at startup.
const FEW_CONNECTIONS: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConnectionCaps {
    pub public: usize,
    pub ops: usize,
}

impl ConnectionCaps {
    /// The caps under the file limit of this process.
    pub(super) fn of_process() -> Self {
        let limit = getrlimit(Resource::Nofile).current;
        Self::new(limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX)))
    }

    fn new(max_files: usize) -> Self {
        let available = max_files.saturating_sub(RESERVED_FILES);
        let ops = (available / 8).clamp(1, MAX_OPS_CONNECTIONS);
        let public = (available.saturating_sub(ops) / FILES_PER_CONNECTION).clamp(1, MAX_CONNECTIONS);
        Self { public, ops }
    }

    /// Returns a setup hint if there are few.
    pub(super) fn hint(self) -> Option<String> {
        (self.public < FEW_CONNECTIONS).then(|| {
            format!(
                "At most {} open at once, because this process may open few files. Raise the limit: `LimitNOFILE` of \
                 systemd, or `ulimit -n`.",
                quantity(self.public as u64, "connection is", "connections are")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_everything_else() {
        for max_files in [0, 64, 65, 100, 256, 1024, 4096, 16_384, 65_536, usize::MAX] {
            let ConnectionCaps { public, ops } = ConnectionCaps::new(max_files);
            assert!((1..=MAX_CONNECTIONS).contains(&public) && (1..=MAX_OPS_CONNECTIONS).contains(&ops));
            let is_minimum = (public, ops) == (1, 1);
            assert!(is_minimum || public * FILES_PER_CONNECTION + ops + RESERVED_FILES <= max_files, "{max_files}");
        }
        assert_eq!(ConnectionCaps::new(1024), ConnectionCaps { public: 448, ops: 64 });
        assert_eq!(ConnectionCaps::new(1_048_576).public, MAX_CONNECTIONS);
    }
}
