//! Work that computes or blocks for a millisecond or more, on a thread that also handles requests.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// Runs `work` while another thread goes on with the other tasks of this one. A runtime with one thread has no other: that of a
/// command, which handles no requests.
pub fn blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(work),
        _ => work(),
    }
}
