//! Backups: create, rotate and restore.

mod bucket_backup;
mod bucket_download;
mod bucket_layout;
mod create_and_rotate;
mod encryption;
mod folder;
mod restore;
mod state;

pub use bucket_backup::{BucketBackupStep, BucketBackups};
pub use bucket_download::{BucketSource, Download};
pub use bucket_layout::parse_day;
pub use create_and_rotate::{BackupFailure, CreatedBackup, create_backup, delete_old_backups, rotated_backup_folder};
pub use encryption::BackupKey;
pub use restore::{RestoreFailure, Restored, restore};
pub use state::BackupState;
