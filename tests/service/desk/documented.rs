//! Uploads by curl over https, as `docs/releases.md` shows them, and the memory that a large one takes.

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use porchlight::config::RawSettings;

use super::interrupted::Running;
use super::{open, run, token};
use crate::harness::{Authority, Identity, Program, Service, disk_image, each_migrated_database, trailer};

fn with_tls(identity: &Identity) -> RawSettings {
    RawSettings {
        tls_cert: Some(identity.certificate().display().to_string()),
        tls_key: Some(identity.key().display().to_string()),
        redirect_listen: Some("off".to_owned()),
        ..open()
    }
}

/// Lets curl find every host at this port and trust the authority.
fn curlrc(folder: &Path, port: u16, authority: &Authority) {
    let authority = authority.path();
    let text = format!("connect-to = \"::127.0.0.1:{port}\"\ncacert = \"{}\"\n", authority.display());
    std::fs::write(folder.join(".curlrc"), text).unwrap();
}

/// The first block in the document of lines for a shell after these words.
fn documented(after: &str) -> &'static str {
    let (_, rest) = include_str!("../../../docs/releases.md").split_once(after).expect("the words");
    let (_, block) = rest.split_once("```sh\n").expect("a block");
    block.split_once("\n```").expect("its end").0
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lines_of_the_document_publish_a_release_with_its_notes() {
    let authority = Authority::new();
    let identity = authority.issue_to(&["troupe.example"]);
    for database in each_migrated_database().await {
        let service = Service::start(with_tls(&identity), database).await;
        let folder = tempfile::tempdir().unwrap();
        curlrc(folder.path(), service.address().port(), &authority);
        let file = |name: &str, contents: &[u8]| std::fs::write(folder.path().join(name), contents).unwrap();
        file("Troupe.dmg", &disk_image(3_000_000, 7));
        file("notes.md", b"# Much faster\n");
        let signature = "aB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaA==";
        file("sign_update", format!("#!/bin/sh\n[ \"$*\" = '-p Troupe.dmg' ] && echo '{signature}'\n").as_bytes());
        let mut script = Command::new("sh");
        script.args(["-euc", &format!("chmod +x sign_update; PATH=.:$PATH; {}", documented("In a script"))]);
        script.current_dir(folder.path()).stdin(Stdio::null());
        script.envs([("CURL_HOME", folder.path().to_str().unwrap()), ("TOKEN", &token(&service))]);
        for _ in 0..2 {
            let output = Program::run_to_end(&mut script);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        let (_, listed, _) = run(&service, &["release", "list", "--json"]);
        let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
        assert_eq!(listed.as_array().unwrap().len(), 1, "{listed:#}");
        for (name, value) in
            [("version", "1.1.0"), ("build", "110"), ("ed_signature", signature), ("notes", "# Much faster")]
        {
            assert_eq!(listed[0][name], value, "{listed:#}");
        }
        service.stop().await;
    }
}

/// The most memory that a process has had, in KiB.
fn peak(program: &Program) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", program.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn a_large_image_takes_no_memory_over_either_version_of_http() {
    const LENGTH: u64 = 200_000_000;
    let authority = Authority::new();
    let identity = authority.issue_to(&["troupe.example"]);
    let [sqlite, _] = each_migrated_database().await;
    let running = Running::new(sqlite);
    let token = running.token();
    let mut command = running.command(&[]);
    command.env("PORCHLIGHT_TLS_CERT", identity.certificate()).env("PORCHLIGHT_TLS_KEY", identity.key());
    let program = Running::serve(command);
    curlrc(running.folder.path(), program.address().port(), &authority);
    let mut image = std::fs::File::create(running.folder.path().join("large.dmg")).unwrap();
    image.seek(SeekFrom::Start(LENGTH - 512)).unwrap();
    image.write_all(&trailer(LENGTH - 512)).unwrap();
    for (flag, version) in [("--http2", "1.0.0"), ("--http1.1", "1.1.0")] {
        let before = peak(&program);
        let mut curl = Command::new("curl");
        curl.args([
            flag,
            "--fail-with-body",
            "--silent",
            "-T",
            "large.dmg",
            "-H",
            &format!("Authorization: Bearer {token}"),
        ]);
        curl.arg(format!("https://troupe.example/desk/releases/{version}"));
        curl.env("CURL_HOME", running.folder.path()).current_dir(running.folder.path());
        let (code, said) = Program::run(curl);
        assert_eq!(code, 0, "{said}");
        assert!(said.contains(&format!("\"length\": {LENGTH}")), "{said}");
        let grown = peak(&program) - before;
        assert!(grown < 24 * 1024, "{flag}: {grown} KiB more");
    }
}
