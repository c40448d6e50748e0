//! The rules of the service, use cases by subject, and the state they share. Layer 2, called by the JSON API, MCP,
//! the forms and the commands.
//!
//! An action takes validated values and returns a plain value or a failure. It knows neither HTTP nor SQL; where a
//! statement enforces a rule, the doc comment of the action names it.

mod backup;
mod certificate;
mod contact;
mod desk;
mod expiry;
mod failure;
mod health;
mod letter_archive;
mod letters;
mod outbox;
mod people;
mod random;
mod releases;
mod revision_cache;
mod service;
mod signups;
mod site;
mod statistics;
mod tokens;

pub use crate::actions::backup::restore;
pub use crate::actions::health::readiness;
pub use backup::{
    BackupFailure, BackupKey, BackupState, BucketBackupStep, BucketBackups, BucketSource, CreatedBackup,
    RestoreFailure, Restored, create_backup, delete_old_backups, parse_day, restore_from_bucket, rotated_backup_folder,
};
pub use certificate::{CertificateOrders, delete_certificate_copy};
pub use contact::{
    Discarded, RetryFailure, delivery_in_words, discard_messages, inbox_page, message_json, retried_in_words,
    retry_message, send_contact,
};
pub use desk::{create_sign_in_link, find_session, mail_sign_in_link, record_change, sign_in};
pub use expiry::Pruner;
pub use failure::Failure;
pub use health::{
    Alerts, DiskSpace, FREE_UP_SPACE, ReadinessCheck, confirmations_in_words, image_problem, nearest_folder,
};
pub use letter_archive::LetterArchive;
pub use letters::{
    BounceOutcome, LetterEnd, LetterEvent, LetterFailure, LetterSender, LetterStep, LettersOfService, LettersStep,
    TestCopyFailure, UnchangedReason, can_unsubscribe, compose_copy, confirm_opt_in, confirmation_link, create_draft,
    decline_opt_in, letter_settings, new_bounce_tag, opt_in_sentences, placeholder, record_bounce, run_letter,
    send_by_service, send_test_copy, stop_letter, unsubscribe,
};
pub use outbox::{ConfirmationTexts, OutboxSender, SendStep};
pub use people::{
    ErasedPerson, FoundPeople, LEFT_ELSEWHERE, PeoplePage, PersonFailure, erase_person, find_people, find_person,
    people_notes, people_page, person_facts, person_history, person_json, suppress_person, unsuppress_person,
};
pub use releases::{
    ChangeFailure, ImageFailure, ImageSource, ImageStore, ImageStream, NewRelease, NewestImage, PublishFailure,
    ReleaseCatalog, ReleaseStore, Uploaded, check_end, check_upload, check_withdrawable, edit_release, latest_path,
    latest_path_of, publish_release, release_record, restore_release, same_image_note, upload_release,
    what_withdrawing_does, withdraw_release,
};
pub use service::Service;
pub use signups::{StartedDownload, import_people, join_waitlist, start_download};
pub use site::{
    AppMismatch, MAIL_STEP, PUBLISH_COMMAND, address_step, check_app, claim_database, empty_database_warning,
    keeps_waitlist, sample_texts_step, setup_steps,
};
pub use statistics::{CachedSummary, CachedTotals, CountBuffer, OpsSummary, StatisticsRange, ops_summary, statistics};
pub use tokens::{authorize_token, create_token};
