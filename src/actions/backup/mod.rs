//! Backups: create, rotate and restore.

mod create_and_rotate;
mod folder;
mod restore;

pub use create_and_rotate::{
    BackupFailure, CreatedBackup, LastBackup, MAKE_A_BACKUP, create_backup, delete_old_backups, rotated_backup_folder,
};
pub use restore::{RestoreFailure, Restored, restore};
