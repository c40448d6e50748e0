//! Incomplete, damaged, changed and older backups.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use porchlight::config::RawSettings;
use serde_json::{Value, json};

use super::{back_up, files, lived_in, restore, restore_unverified};
use crate::harness::{Database, Program, Service, each_database};
use crate::moving::wait_for_a_blocked_lock;
use crate::opening::refused;
use crate::releases::live;

/// A backup of a service with a few people and two images, in a folder that outlives it.
async fn some_backup() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let service = Service::start(live(), Database::migrated_sqlite().await).await;
    for version in ["1.4.0", "1.5.0", "1.6.0"] {
        service.publish(version);
    }
    for person in 0..300 {
        let order = json!({ "email": format!("person{person}@example.com"), "updates": true });
        service.post("/api/download", &order).await.expect_ok();
    }
    let backup = folder.path().join("backup");
    assert_eq!(back_up(&service, backup.to_str().unwrap()).0, 0);
    service.stop().await;
    (folder, backup)
}

fn edit(file: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(file).expect("bytes");
    change(&mut bytes);
    // A new file: images of a backup may be hard links to the published ones.
    fs::remove_file(file).expect("to be removed");
    fs::write(file, bytes).expect("to be written");
}

#[tokio::test]
async fn a_foreign_database_is_not_reported_as_a_success() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("porchlight.db");
    let foreign = Database::sqlite();
    fs::write(foreign.url().trim_start_matches("sqlite:"), "").unwrap();
    foreign.execute("CREATE TABLE notes (text TEXT)").await;
    for target in each_database().await {
        fs::write(&file, "").unwrap();
        refused(restore(folder.path(), &target, folder.path()), "is not a Porchlight database");
        fs::copy(foreign.url().trim_start_matches("sqlite:"), &file).unwrap();
        refused(restore(folder.path(), &target, folder.path()), "is not a Porchlight database");
        fs::write(&file, "Dear diary, ".repeat(1000)).unwrap();
        refused(restore(folder.path(), &target, folder.path()), "the backup is damaged");
        if target.is_postgres() {
            assert!(target.everything().await.is_empty(), "nothing was made");
        } else {
            assert!(!Path::new(target.url().trim_start_matches("sqlite:")).exists(), "nothing was made");
        }
    }
}

#[tokio::test]
async fn a_backup_that_was_cut_short_damaged_or_changed_is_not_restored() {
    let (folder, backup) = some_backup().await;
    let (file, manifest) = (backup.join("porchlight.db"), backup.join("manifest.json"));
    let whole = fs::read(&file).unwrap();
    let target = Database::sqlite();
    for (words, change) in [
        ("is damaged", (|bytes: &mut Vec<u8>| bytes.truncate(bytes.len() / 2)) as fn(&mut Vec<u8>)),
        ("is damaged", |bytes| {
            let end = bytes.len();
            bytes[4096..end].fill(0xa5);
        }),
        ("rows of the table people were changed", |bytes| {
            let row = b"person7@example.comperson7@example.com";
            let place = bytes.windows(row.len()).position(|text| text == row).expect("the row of a person");
            bytes[place + 30] = b'E';
        }),
    ] {
        edit(&file, change);
        let (code, output) = restore(&backup, &target, folder.path());
        assert_eq!(code, 1, "{output}");
        assert!(output.contains(file.to_str().unwrap()), "which file: {output}");
        assert!(output.contains(words), "{output}");
        fs::write(&file, &whole).unwrap();
    }
    assert!(!Path::new(target.url().trim_start_matches("sqlite:")).exists(), "nothing was made");

    Database::sqlite_at(&file).execute("DELETE FROM people WHERE address = 'person7@example.com'").await;
    refused(restore(&backup, &target, folder.path()), "the table people has 299 rows instead of 300");
    fs::remove_file(&manifest).unwrap();
    refused(restore(&backup, &target, folder.path()), "manifest.json is missing");
    assert!(!Path::new(target.url().trim_start_matches("sqlite:")).exists(), "nothing was made");
    let (code, output) = restore_unverified(&backup, &target, folder.path());
    assert_eq!((code, target.count("people").await), (0, 299), "{output}");
}

#[tokio::test]
async fn a_release_that_leads_to_a_script_is_never_offered() {
    let (folder, backup) = some_backup().await;
    let set = "UPDATE releases SET external_url = 'javascript:alert(1)' WHERE version = '1.6.0'";
    Database::sqlite_at(&backup.join("porchlight.db")).execute(set).await;
    for target in each_database().await {
        refused(restore(&backup, &target, folder.path()), "rows of the table releases were changed");
        let (code, output) = restore_unverified(&backup, &target, folder.path());
        assert_eq!(code, 1, "{output}");
        assert!(output.contains("the image of 1.6.0 (its row in the database is damaged)"), "{output}");
        let service = Service::start(RawSettings::default(), target).await;
        let releases = service.get("/releases.json").await.text();
        assert!(releases.contains("1.5.0") && !releases.contains("1.6.0"), "{releases}");
        for path in ["/", "/releases", "/appcast.xml", "/llms.txt"] {
            assert!(!service.get(path).await.text().contains("javascript:"), "{path}");
        }
        service.stop().await;
    }
}

/// Whoever owns the file of a backup goes on writing to it.
#[tokio::test]
async fn a_restored_image_is_a_file_of_its_own() {
    let (folder, backup) = some_backup().await;
    let target = Database::sqlite();
    assert_eq!(restore(&backup, &target, folder.path()).0, 0);
    let name = "Troupe-1.6.0.dmg";
    let restored = folder.path().join("data/releases").join(name);
    let published = fs::read(&restored).unwrap();
    fs::write(backup.join("releases").join(name), "something else").unwrap();
    assert_eq!(fs::read(&restored).unwrap(), published);
}

#[tokio::test]
async fn the_manifest_lists_the_contents_the_version_and_the_time() {
    let (_folder, backup) = some_backup().await;
    let manifest: Value = serde_json::from_slice(&fs::read(backup.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["porchlight"], env!("CARGO_PKG_VERSION"));
    assert!(manifest["made"].as_str().unwrap().ends_with('Z'), "{manifest:#}");
    let tables = manifest["tables"].as_array().unwrap();
    let people = tables.iter().find(|table| table["table"] == "people").expect("the people");
    assert_eq!((&people["rows"], people["sum"].as_str().unwrap().len()), (&json!(300), 32));
}

#[tokio::test]
async fn one_bad_image_keeps_no_other_from_coming_back_and_a_repeat_goes_on() {
    let (folder, backup) = some_backup().await;
    let (damaged, missing) = (backup.join("releases/Troupe-1.6.0.dmg"), backup.join("releases/Troupe-1.5.0.dmg"));
    let (whole, other) = (fs::read(&damaged).unwrap(), fs::read(&missing).unwrap());
    edit(&damaged, |bytes| bytes[100] ^= 1);
    fs::remove_file(&missing).unwrap();
    let (target, releases) = (Database::sqlite(), folder.path().join("data/releases"));
    let (code, output) = restore(&backup, &target, folder.path());
    assert_eq!(code, 1, "{output}");
    for words in [
        "The database is restored, but some images are missing",
        "Troupe-1.6.0.dmg (its length or SHA-256 differs from the published release)",
        "Troupe-1.5.0.dmg (it is not in the backup)",
    ] {
        assert!(output.contains(words), "{output}");
    }
    assert!(!output.contains("Everything was restored"), "{output}");
    assert_eq!(target.count("people").await, 300);
    assert_eq!(files(&releases).into_keys().collect::<Vec<_>>(), ["Troupe-1.4.0.dmg"]);

    fs::write(&damaged, &whole).unwrap();
    fs::write(&missing, &other).unwrap();
    let (code, output) = restore(&backup, &target, folder.path());
    assert_eq!(code, 0, "{output}");
    assert_eq!(files(&releases), files(&backup.join("releases")));
}

/// All files below a folder that this test did not put there itself.
fn images_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let below = |path: PathBuf| if path.is_dir() { images_below(&path) } else { vec![path] };
    entries.flat_map(below).filter(|path| path.to_string_lossy().contains("planted")).collect()
}

#[tokio::test]
async fn an_image_whose_name_is_a_path_is_not_restored_and_everything_else_is() {
    let (folder, backup) = some_backup().await;
    let outside = tempfile::tempdir().expect("a folder");
    fs::remove_file(backup.join("manifest.json")).unwrap();
    let image = fs::read(backup.join("releases/Troupe-1.4.0.dmg")).unwrap();
    let absolute = outside.path().join("planted.dmg").display().to_string();
    let home = folder.path().join("home/below");
    fs::create_dir_all(&home).unwrap();
    for name in ["../../planted.dmg", "../planted.dmg", absolute.as_str(), "sub/planted.dmg", "..", "planted", ".lock"]
    {
        let set = format!("UPDATE releases SET file = '{name}' WHERE version = '1.4.0'");
        Database::sqlite_at(&backup.join("porchlight.db")).execute(&set).await;
        // The image is where the name leads to, so that only the name is wrong.
        let source = backup.join("releases").join(name);
        fs::create_dir_all(source.parent().unwrap()).unwrap();
        if !source.exists() {
            fs::write(&source, &image).unwrap();
        }
        let planted = images_below(folder.path());
        for target in each_database().await {
            let (code, output) = restore_unverified(&backup, &target, &home);
            assert_eq!((code, target.count("people").await), (1, 300), "{output}");
            assert!(output.contains("the image of 1.4.0 (its row in the database is damaged)"), "{output}");
            let restored = files(&home.join("data/releases")).into_keys().collect::<Vec<_>>();
            assert_eq!(restored, ["Troupe-1.5.0.dmg", "Troupe-1.6.0.dmg"], "{name}");
        }
        assert_eq!(images_below(folder.path()), planted, "{name}");
    }
}

#[tokio::test]
async fn a_published_image_that_is_a_symbolic_link_is_backed_up_as_a_file() {
    let service = Service::start(live(), Database::migrated_sqlite().await).await;
    let image = service.publish("1.4.0");
    let (published, moved) = (service.releases_dir().join("Troupe-1.4.0.dmg"), service.releases_dir().join("moved"));
    fs::rename(&published, &moved).unwrap();
    std::os::unix::fs::symlink("moved", &published).unwrap();
    let (code, output) = back_up(&service, "backup");
    assert_eq!(code, 0, "{output}");
    let copy = service.releases_dir().parent().unwrap().join("backup/releases/Troupe-1.4.0.dmg");
    assert!(copy.symlink_metadata().unwrap().is_file() && fs::read(&copy).unwrap() == image);
    service.stop().await;
}

#[tokio::test]
async fn the_files_of_a_database_in_use_are_not_taken_for_a_backup() {
    let folder = tempfile::tempdir().expect("a folder");
    let service = Service::start(live(), Database::migrated_sqlite().await).await;
    service.post("/api/waitlist", &json!({ "email": "ada@example.com" })).await.expect_ok();
    let file = PathBuf::from(service.database.url().trim_start_matches("sqlite:"));
    refused(restore(file.parent().unwrap(), &Database::sqlite(), folder.path()), "a database in use, or a copy of one");
    assert_eq!(service.database.count("people").await, 1);
    service.stop().await;
}

#[tokio::test]
async fn a_killed_restore_leaves_no_personal_data_behind() {
    let (backup, home) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let file = backup.path().join("porchlight.db");
    let database = Database::sqlite_at(&file);
    Service::start(live(), database.clone()).await.stop().await;
    let people = "INSERT INTO people (address, email, first_seen_at) \
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 3000) \
         SELECT 'p' || n || '@example.com', 'P' || n || '@example.com', n FROM numbers";
    database.execute(people).await;
    let before = files(backup.path());
    let temporary = home.path().join("temporary");
    fs::create_dir(&temporary).unwrap();
    let target = Database::postgres().await;
    Service::start(live(), target.clone()).await.stop().await;
    let lock = target.lock_for_writing("people").await;

    let mut command = Program::command(home.path(), &["restore", backup.path().to_str().unwrap(), "--unverified"]);
    command.args(["--database-url", target.url()]).env("SQLITE_TMPDIR", &temporary).env("TMPDIR", &temporary);
    let mut restoring = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for_a_blocked_lock(&target).await;
    restoring.kill().unwrap();
    assert_eq!(Program::wait(restoring, "the end of a killed command").status.signal(), Some(9));
    lock.release().await;
    assert!(files(&temporary).is_empty());
    assert!(!home.path().join("data").exists());
    assert!(files(backup.path()) == before);

    let (code, output) = restore_unverified(backup.path(), &target, home.path());
    assert_eq!((code, target.count("people").await), (0, 3000), "{output}");
}

#[tokio::test]
async fn data_comes_back_where_no_file_may_be_written() {
    let (folder, backup) = some_backup().await;
    let home = folder.path().join("home");
    fs::create_dir(&home).unwrap();
    // There is a file where the folder would be created.
    fs::write(home.join("data"), "in the way").unwrap();
    let target = Database::postgres().await;
    let (code, output) = restore(&backup, &target, &home);
    assert_eq!((code, target.count("people").await), (1, 300), "{output}");
    assert!(output.contains("The database is restored, but some images are missing: Troupe-1.6.0.dmg ("), "{output}");
}

#[tokio::test]
async fn a_damaged_database_is_named_with_what_to_do() {
    let (service, _server) = lived_in(Database::migrated_sqlite().await).await;
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("copy.db");
    service.database.execute(&format!("VACUUM INTO '{}'", copy.display())).await;
    service.stop().await;
    edit(&copy, |bytes| {
        let end = bytes.len();
        bytes[8192..end].fill(0xa5);
    });
    let url = format!("sqlite:{}", copy.display());
    let run = |arguments: &[&str]| {
        let mut command = Program::command(folder.path(), arguments);
        command.args(["--database-url", &url]);
        Program::run(command)
    };
    for arguments in
        [&["backup", "b"][..], &["people", "list"], &["release", "list"], &["people", "suppress", "a@b.example"]]
    {
        let (code, output) = run(arguments);
        assert_eq!(code, 1, "{arguments:?}: {output}");
        assert!(output.contains("is damaged") && !output.contains("rejected a statement"), "{arguments:?}: {output}");
    }
    let (_, output) = run(&["backup", "again"]);
    assert!(output.contains(copy.to_str().unwrap()) && output.contains("porchlight restore"), "{output}");
}
