//! `backup --keep`: a folder of which the newest backups are kept.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::{command, home, lived_in, restore};
use crate::harness::{Database, NOW, Program, each_database};

const DAY: Duration = Duration::from_hours(24);

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn the_newest_backups_are_kept_and_whatever_else_is_there_stays() {
    for database in each_database().await {
        let (service, _server) = lived_in(database).await;
        let backups = home(&service).join("backups");
        fs::create_dir_all(backups.join("before-0.2.0")).expect("a folder of the maker");
        fs::create_dir(backups.join("2026-11-15")).expect("a folder of the maker");
        fs::write(backups.join("2026-11-01T03-00-00Z"), "a file").expect("a file of the maker");
        fs::create_dir(backups.join("2026-11-10T03-00-00Z")).expect("an interrupted backup");
        fs::create_dir(backups.join("2026-11-17T11-59-59Z")).expect("a backup that another process writes");
        fs::create_dir(backups.join("2030-01-01T00-00-00Z")).expect("a backup at a time when the clock was wrong");
        fs::write(backups.join("2030-01-01T00-00-00Z/porchlight.db"), "").expect("its database");
        for day in 0..4 {
            let mut command = command(&service, &["backup", "--keep", "2", "backups"]);
            Program::set_clock(&mut command, NOW.after(DAY * day));
            let (code, output) = Program::run(command);
            assert_eq!(code, 0, "{output}");
            let deleted = output.lines().filter(|line| line.starts_with("Deleted the old backup")).count();
            assert_eq!(deleted, [1, 0, 1, 2][day as usize], "{output}");
        }
        let kept = names(&backups);
        assert_eq!(kept[..4], ["2026-11-01T03-00-00Z", "2026-11-15", "2026-11-17T12-00-00Z", "2026-11-18T12-00-00Z"]);
        assert_eq!(kept[4..], ["2030-01-01T00-00-00Z", "before-0.2.0"]);

        let target = Database::sqlite();
        let elsewhere = tempfile::tempdir().expect("a folder");
        let (code, output) = restore(&backups.join("2026-11-18T12-00-00Z"), &target, elsewhere.path());
        assert_eq!(code, 0, "{output}");
    }
}

#[tokio::test]
async fn while_an_image_is_missing_backups_rotate_and_the_newest_one_with_all_images_stays() {
    let (service, _server) = lived_in(Database::sqlite()).await;
    let backup = |day: u32| {
        let mut command = command(&service, &["backup", "--keep", "1", "backups"]);
        Program::set_clock(&mut command, NOW.after(DAY * day));
        Program::run(command)
    };
    assert_eq!(backup(0).0, 0);
    let image = service.releases_dir().join("Troupe-1.4.0.dmg");
    let aside = image.with_extension("aside");
    fs::rename(&image, &aside).expect("an image");
    for day in 1..=3 {
        let (code, output) = backup(day);
        assert!(code == 1 && output.contains("some images are missing: Troupe-1.4.0.dmg"), "{output}");
        assert_eq!(names(&home(&service).join("backups")).len(), 2);
    }
    let kept = names(&home(&service).join("backups"));
    assert_eq!(kept, ["2026-11-15T12-00-00Z", "2026-11-18T12-00-00Z"]);
    fs::rename(&aside, &image).expect("an image");
    assert_eq!(backup(4).0, 0);
    assert_eq!(names(&home(&service).join("backups")), ["2026-11-19T12-00-00Z"]);
}

#[tokio::test]
async fn none_is_not_a_number_of_backups_to_keep() {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, output) = Program::run(Program::command(folder.path(), &["backup", "--keep", "0", "backups"]));
    assert_eq!(code, 2, "{output}");
}
