//! How many connections and disk images may be open at once, given how many files the process may open.

use rustix::process::{Resource, getrlimit};

use crate::domain::limits::{MAX_CONNECTIONS, MAX_OPS_CONNECTIONS};
use crate::domain::plural::quantity;

/// Files that are kept free for the database, the mail server, the site and the standard streams.
const RESERVED_FILES: usize = 64;
/// Below this many connections, there is a hint at startup.
const FEW_CONNECTIONS: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenFileCaps {
    /// Connections of visitors.
    pub public: usize,
    /// Connections to the ops listener.
    pub ops: usize,
    /// Disk images that are being sent. One connection may ask for many over HTTP/2, so they have a cap of their own.
    pub images: usize,
}

impl OpenFileCaps {
    /// The caps under the file limit of this process.
    pub(super) fn of_process() -> Self {
        let limit = getrlimit(Resource::Nofile).current;
        Self::new(limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX)))
    }

    fn new(max_files: usize) -> Self {
        let available = max_files.saturating_sub(RESERVED_FILES);
        let ops = (available / 8).clamp(1, MAX_OPS_CONNECTIONS);
        let public = (available.saturating_sub(ops) / 2).clamp(1, MAX_CONNECTIONS);
        Self { public, ops, images: public }
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
    fn connections_and_images_leave_files_for_everything_else() {
        for max_files in [0, 64, 65, 100, 256, 1024, 4096, 16_384, 65_536, usize::MAX] {
            let OpenFileCaps { public, ops, images } = OpenFileCaps::new(max_files);
            assert!((1..=MAX_CONNECTIONS).contains(&public) && (1..=MAX_OPS_CONNECTIONS).contains(&ops) && images >= 1);
            let is_minimum = (public, ops, images) == (1, 1, 1);
            assert!(is_minimum || public + images + ops + RESERVED_FILES <= max_files, "{max_files}");
        }
        assert_eq!(OpenFileCaps::new(1024), OpenFileCaps { public: 448, ops: 64, images: 448 });
        assert_eq!(OpenFileCaps::new(1_048_576).public, MAX_CONNECTIONS);
    }
}
