//! All settings. Only this module and `clap` read variables of ours; the PostgreSQL driver and the activation of sockets read their
//! own.
//!
//! A setting has one name in three forms: `base_url` in the file, `PORCHLIGHT_BASE_URL` in the
//! environment, `--base-url` as a flag. A flag overrides the environment, which overrides the file,
//! which overrides the default.

mod file_and_environment;
mod https;
mod images;
mod mail;
mod ops_and_clients;
mod secret;
mod setting_names;
mod settings;
mod text;

#[cfg(debug_assertions)]
pub(crate) use file_and_environment::test_now;
pub use file_and_environment::{Origin, ResolvedSetting};
pub(crate) use file_and_environment::{notify_socket, socket_names, test_panic};
pub use https::{AcmeSettings, CertificateFiles, CertificateSource, Tls};
pub use images::{AccessKey, BackupSettings, BucketAccess, BucketSettings, ImagePlace};
pub use mail::{DkimSettings, MailSettings};
pub use ops_and_clients::{ClientSettings, Desk, Ops, OpsListen, loopback_address};
pub use secret::{Secret, is_secret, redacted};
pub use setting_names::RawSettings;
pub use settings::{LogFormat, Settings};
pub use text::InvalidSettings;
