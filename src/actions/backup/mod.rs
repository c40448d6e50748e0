//! Backups: create, rotate and restore.

pub mod create;
mod folder;
mod kept;
pub mod restore;

pub use create::{BackupFailure, CreatedBackup, create_backup};
pub use kept::{LastBackup, MAKE_A_BACKUP, delete_old_backups, rotated_backup_folder};
pub use restore::{RestoreFailure, Restored, restore};
