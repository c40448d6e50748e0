//! An interrupted publication changes nothing, and can be repeated.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use super::{LATEST, leads_to, listed, live};
use crate::harness::{Program, Service, disk_image, on_each_database_with, wait_until};

const LENGTH: usize = 3 * 1024 * 1024;

fn image(service: &Service) -> PathBuf {
    service.file("large.dmg", disk_image(LENGTH, 9))
}

fn publish(service: &Service, image: &Path) -> Command {
    let mut command = service.release_command(&["publish", image.to_str().unwrap(), "--version", "2.0.0"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// The system kills the program when a file exceeds so many bytes.
fn cut_off_at(bytes: usize, command: &Command) -> ExitStatus {
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -f {}; exec \"$@\"", bytes / 512), "sh"]);
    limited.arg(command.get_program()).args(command.get_args());
    Program::run_to_end(&mut limited).status
}

#[tokio::test]
async fn killed_while_copying_it_keeps_the_newest_and_can_be_repeated() {
    on_each_database_with(live(), async |service| {
        service.publish("1.4.0");
        let image = image(service);
        let partial = service.releases_dir().join(".partial");
        for bytes in [LENGTH / 3, LENGTH / 2, LENGTH - 512] {
            let ended = cut_off_at(bytes, &publish(service, &image));
            assert!(ended.signal().is_some(), "it was to be killed: {ended}");
            assert_eq!(std::fs::metadata(&partial).unwrap().len(), bytes as u64);
            assert_eq!(listed(service).as_array().unwrap().len(), 1);
            assert_eq!(leads_to(service).await, "/releases/Troupe-1.4.0.dmg");
            assert_eq!(service.get("/releases/Troupe-2.0.0.dmg").await.status, 404);
        }
        assert!(Program::run_to_end(&mut publish(service, &image)).status.success());
        service.read_releases();
        assert_eq!(leads_to(service).await, "/releases/Troupe-2.0.0.dmg");
        assert!(service.get("/releases/Troupe-2.0.0.dmg").await.body == disk_image(LENGTH, 9));
        assert!(!partial.exists());
    })
    .await;
}

#[tokio::test]
async fn killed_before_the_row_is_written_it_keeps_the_newest_and_can_be_repeated() {
    on_each_database_with(live(), async |service| {
        service.publish("1.4.0");
        let image = image(service);
        let whole = service.releases_dir().join("Troupe-2.0.0.dmg");
        let lock = service.database.lock_releases().await;
        let mut publishing = publish(service, &image).spawn().unwrap();
        wait_until("the copy of the image", async || whole.exists()).await;
        publishing.kill().unwrap();
        Program::wait(publishing, "the end of a killed command");
        lock.release().await;
        assert_eq!(listed(service).as_array().unwrap().len(), 1);
        assert_eq!(leads_to(service).await, "/releases/Troupe-1.4.0.dmg");
        assert_eq!(service.get("/releases/Troupe-2.0.0.dmg").await.status, 404, "what is not recorded is not there");

        assert!(Program::run_to_end(&mut publish(service, &image)).status.success());
        service.read_releases();
        assert_eq!(leads_to(service).await, "/releases/Troupe-2.0.0.dmg");
    })
    .await;
}

#[tokio::test]
async fn two_cannot_publish_into_one_folder_at_once() {
    on_each_database_with(live(), async |service| {
        service.publish("1.4.0");
        let lock = File::open(service.releases_dir().join(".lock")).unwrap();
        lock.lock().unwrap();
        let image = image(service);
        let (code, output) = service.release(&["publish", image.to_str().unwrap(), "--version", "2.0.0"]);
        assert_eq!(code, 1);
        assert!(output.contains("Another release is being published"), "{output}");
        assert_eq!(service.head(LATEST).await.header("location"), "/releases/Troupe-1.4.0.dmg");
    })
    .await;
}
