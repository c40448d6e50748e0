//! Downloads, joins and opt-ins.

pub mod consent;
mod signup;

pub use consent::{EXTERNAL_WORDING, OptIn, OptInRequest, PendingOptIn, Via, WORDING, opt_in_origin};
pub use signup::{DownloadRequest, KnownBefore, SignupKind, SignupRecord, WaitlistRequest};
