//! The lines of `docs/backup.md`, typed as they stand there, with the real program.

use std::path::Path;
use std::process::Command;

use crate::backup::lived_in;
use crate::harness::{Bucket, Database, Program, each_database};

const DOCUMENT: &str = include_str!("../../../../docs/backup.md");

/// The first block of this kind in the document after these words.
fn documented(kind: &str, after: &str) -> &'static str {
    let (_, rest) = DOCUMENT.split_once(after).expect("the words");
    let (_, block) = rest.split_once(&format!("```{kind}\n")).expect("a block");
    block.split_once("\n```").expect("its end").0
}

/// Types lines into a shell, in a folder of which the settings are used, and returns what the shell prints.
fn typed(folder: &Path, lines: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_porchlight"));
    let porchlight = Program::command(folder, &[]);
    let mut shell = Command::new("sh");
    shell.args(["-euc", lines]).current_dir(folder).envs(Bucket::environment());
    for (name, value) in porchlight.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None if name.to_str().is_some_and(|name| name.starts_with("AWS_")) => &mut shell,
            None => shell.env_remove(name),
        };
    }
    let path = std::env::join_paths([program.parent().expect("a folder"), Path::new("/usr/bin"), Path::new("/bin")]);
    let output = Program::run_to_end(shell.env("PATH", path.expect("a path")));
    let text = String::from_utf8([output.stdout, output.stderr].concat()).expect("UTF-8");
    assert!(output.status.success(), "{text}");
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lines_of_the_document_make_a_key_back_up_and_restore_on_a_bare_machine() {
    let mut all = Vec::new();
    let bucket = Bucket::named("troupe-backups");
    for database in each_database().await {
        println!("on {database:?}");
        bucket.command("lose");
        let (service, _server) = lived_in(database).await;
        let before = service.database.everything().await;
        let server = tempfile::tempdir().expect("a folder");
        let said = typed(server.path(), documented("sh", "Make the key"));
        let (_, recipient) = said.split_once("backup_recipient = ").expect("the setting");
        let settings = documented("toml", "Then add the settings");
        let (start, _) = settings.split_once("backup_recipient = ").expect("the setting");
        let settings = format!("{start}backup_recipient = {}", recipient.lines().next().expect("a line"));

        std::fs::write(server.path().join("porchlight.toml"), &settings).expect("a file");
        let mut serve = Program::command(server.path(), &["serve", "--listen", "127.0.0.1:0", "--ops-listen", "off"]);
        serve.args(["--database-url", service.database.url(), "--log-format", "logfmt"]).envs(Bucket::environment());
        serve.arg("--releases-dir").arg(service.releases_dir());
        drop(Program::start(serve, "backup made in the bucket"));

        let drill = tempfile::tempdir().expect("a folder");
        std::fs::copy(server.path().join("backup.key"), drill.path().join("backup.key")).expect("the key");
        let said = typed(drill.path(), documented("sh", "Practice it"));
        assert!(said.contains("from the backup of 2026-11-15"), "{said}");
        let restored = Database::sqlite_at(&drill.path().join("drill/porchlight.db"));
        assert_eq!(restored.everything_copied().await, before);
        assert!(drill.path().join("drill/releases/Troupe-1.4.0.dmg").exists());

        for target in each_database().await {
            let machine = tempfile::tempdir().expect("a folder");
            std::fs::copy(server.path().join("backup.key"), machine.path().join("backup.key")).expect("the key");
            let settings = format!("{settings}\ndatabase_url = \"{}\"\n", target.url());
            std::fs::write(machine.path().join("porchlight.toml"), settings).expect("a file");
            typed(machine.path(), documented("sh", "On a new machine"));
            assert_eq!(target.everything_copied().await, before);
        }
        all.push(before.len());
        service.stop().await;
    }
    assert_eq!(all.len(), 2);
}
