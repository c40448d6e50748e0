//! Why the service did not start, or stopped.

use std::io;
use std::net::SocketAddr;

use crate::actions::AppMismatch;
use crate::config::InvalidSettings;
use crate::site::SiteFailure;
use crate::store::{Database, StoreFailure};

#[derive(Debug, thiserror::Error)]
pub enum ServeFailure {
    #[error(transparent)]
    Settings(#[from] InvalidSettings),
    #[error("{}", .0.sentence("The service did not start"))]
    Store(#[from] StoreFailure),
    #[error("The database ({0}) cannot be used: {1}.")]
    Database(Database, String),
    #[error("{}", .1.sentence(&format!("The database ({}) cannot be used", .0)))]
    Damaged(Database, StoreFailure),
    #[error(transparent)]
    Site(#[from] SiteFailure),
    #[error("The service did not start: {0}.")]
    OtherApp(String),
    #[error("The setting `{0}` cannot be used: failed to listen on {1}: {2}.{hint}", hint = hint(*.1, .2))]
    Listen(&'static str, SocketAddr, io::Error),
    #[error(
        "The service ended at once, because the disk could not write the database file; the log has the reason. What was \
         acknowledged is in the WAL beside it. Check the disk, and start the service again."
    )]
    Unsynced,
    #[error("The service stopped, because its background task `{0}` failed; the log has the reason.")]
    TaskFailed(&'static str),
}

impl From<AppMismatch> for ServeFailure {
    fn from(mismatch: AppMismatch) -> Self {
        match mismatch {
            AppMismatch::Site(failure) => failure.into(),
            AppMismatch::Store(failure) => failure.into(),
            AppMismatch::OtherApp(why) => Self::OtherApp(why),
        }
    }
}

fn hint(address: SocketAddr, error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::PermissionDenied && address.port() < 1024 {
        " Ports below 1024 need the capability CAP_NET_BIND_SERVICE: run it as a systemd service that has it, or give it to the program with \
         `setcap cap_net_bind_service=+ep`."
    } else {
        ""
    }
}
