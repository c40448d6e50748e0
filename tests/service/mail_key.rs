//! `porchlight mail`: keys for DKIM and their DNS records.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::harness::{DkimKey, Program};

const MAIL: [&str; 6] = [
    "--smtp-url",
    "smtp://127.0.0.1:1",
    "--mail-from",
    "Troupe <hello@troupe.example>",
    "--contact-to",
    "makers@troupe.example",
];

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Program::run_to_end(&mut Program::command(folder, arguments))
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

/// OpenSSL reads the key and prints its public key.
fn public_key(folder: &Path, file: &str) -> String {
    let arguments = ["pkey", "-in", file, "-pubout"];
    let output = Command::new("openssl").current_dir(folder).args(arguments).output().expect("OpenSSL");
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).lines().filter(|line| !line.starts_with('-')).collect()
}

#[test]
fn a_key_is_made_for_its_owner_alone_and_never_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let (key, make) = (folder.path().join("dkim.pem"), ["mail", "key", "--out", "dkim.pem"]);
    assert_eq!(run(folder.path(), &make).status.code(), Some(0));
    assert_eq!(std::fs::metadata(&key).expect("the key").permissions().mode() & 0o777, 0o600);
    let content = std::fs::read(&key).expect("the key");
    assert!(content.starts_with(b"-----BEGIN PRIVATE KEY-----\n"));
    let again = run(folder.path(), &make);
    assert_eq!(again.status.code(), Some(1));
    assert_eq!(text(&again.stderr), "dkim.pem exists, and no key is ever overwritten. Name another file with --out.\n");
    assert_eq!(std::fs::read(&key).expect("the key"), content);
    let files = std::fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(files, 1, "nothing else is left");

    let nowhere = run(folder.path(), &["mail", "key", "--out", "nowhere/dkim.pem"]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(text(&nowhere.stderr).starts_with("The key cannot be written to nowhere/dkim.pem: "));
}

#[test]
fn the_printed_record_has_the_public_key_in_every_form() {
    let folder = tempfile::tempdir().expect("a folder");
    for (kind, file) in [(&[][..], "rsa.pem"), (&["--ed25519"], "ed25519.pem")] {
        let command = ["mail", "key", "--out", file, "--selector", "Mail-2027"];
        let output = run(folder.path(), &[&command[..], kind, &MAIL].concat());
        let (printed, public_key) = (text(&output.stdout), public_key(folder.path(), file));
        // Of an Ed25519 key DNS has only the last 32 bytes.
        let expected = match kind {
            [] => format!("v=DKIM1; k=rsa; p={public_key}"),
            _ => format!("v=DKIM1; k=ed25519; p={}", &public_key[16..]),
        };
        assert!(
            printed.contains(&format!("\nName:  mail-2027._domainkey.troupe.example\nValue: {expected}\n")),
            "{printed}"
        );
        let (_, zone_file) =
            printed.split_once("\nmail-2027._domainkey.troupe.example. IN TXT (\n").expect("a zone file");
        let (strings, rest) = zone_file.split_once(" )\n").expect("its end");
        let strings: Vec<_> = strings.lines().map(|line| line.trim().trim_matches('"')).collect();
        assert!(strings.concat() == expected && strings.iter().all(|string| string.len() <= 255), "{printed}");
        let path = folder.path().canonicalize().expect("a folder").join(file);
        let settings = format!("\ndkim_selector = \"mail-2027\"\ndkim_key = \"{}\"\n", path.display());
        assert!(rest.ends_with(&settings), "{printed}");
        assert!(!printed.contains("PRIVATE"), "{printed}");

        let key = ["--dkim-selector", "mail-2027", "--dkim-key", file];
        let record = run(folder.path(), &[&["mail", "record"], &MAIL[..], &key].concat());
        assert!(text(&record.stdout).contains(&format!("\nValue: {expected}\n")), "{record:?}");
        let record = run(folder.path(), &[&["mail", "record", "--json"], &MAIL[..], &key].concat());
        let record: Value = serde_json::from_slice(&record.stdout).expect("JSON and nothing else");
        assert_eq!(record["name"], "mail-2027._domainkey.troupe.example");
        assert_eq!(record["value"], expected);
    }
}

#[test]
fn a_new_key_needs_a_new_selector() {
    let (folder, key) = (tempfile::tempdir().expect("a folder"), DkimKey::rsa());
    let used = [&["mail", "key", "--out", "new.pem"], &MAIL[..]].concat();
    let mut command = Program::command(folder.path(), &used);
    command.args(key.arguments());
    let (code, output) = Program::run(command);
    assert!(code == 1 && output.starts_with("The selector mail is in use for the key in "), "{output}");
    let mut command = Program::command(folder.path(), &[&used[..], &["--selector", "mail-2027"]].concat());
    command.args(key.arguments());
    assert_eq!(Program::run(command).0, 0);
}

#[test]
fn a_key_that_cannot_be_used_stops_the_start_with_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "openssl genrsa 1024 | openssl pkcs8 -topk8 -nocrypt -out small.pem
        openssl genrsa -traditional -out other-format.pem 2048
        openssl ecparam -genkey -name prime256v1 -noout | openssl pkcs8 -topk8 -nocrypt -out elliptic.pem
        echo nonsense >nonsense.pem";
    let made = Command::new("sh").args(["-c", script]).current_dir(folder.path()).output().expect("OpenSSL");
    assert!(made.status.success(), "{made:?}");
    std::fs::write(folder.path().join("letter.md"), "# News\n\nText.\n").expect("a letter");
    for (file, reason) in [
        ("missing.pem", "missing.pem could not be read"),
        ("nonsense.pem", "has no private key in PKCS#8 PEM format"),
        ("other-format.pem", "has no private key in PKCS#8 PEM format"),
        ("elliptic.pem", "is neither RSA nor Ed25519"),
        ("small.pem", "does not have 2048, 3072 or 4096 bits"),
    ] {
        for command in [
            &["serve", "--listen", "127.0.0.1:0", "--ops-listen", "off"][..],
            &["letter", "test", "letter.md", "--to", "me@troupe.example", "--postal-address", "1 Lamp Street"],
            &["letter", "preview", "letter.md"],
            &["mail", "record"],
        ] {
            let key = ["--dkim-selector", "mail", "--dkim-key", file];
            let (code, output) = Program::run(Program::command(folder.path(), &[command, &MAIL, &key].concat()));
            assert_eq!(code, 2, "{output}");
            assert!(output.contains("The setting `dkim_key` cannot be used: ") && output.contains(reason), "{output}");
            assert!(output.contains("`porchlight mail key`") && output.lines().count() == 1, "{output}");
        }
    }
}

#[test]
fn a_key_that_others_can_read_is_pointed_out_by_check() {
    let key = DkimKey::rsa();
    let chmod =
        |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
    chmod(key.path().parent().expect("a folder"), 0o755);
    for (mode, is_exposed) in [(0o600, false), (0o640, false), (0o644, true)] {
        chmod(&key.path(), mode);
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Program::command(folder.path(), &["check", "--name-server", "127.0.0.1:1"]);
        command.args(MAIL).args(key.arguments());
        let (_, output) = Program::run(command);
        let warning = format!("Every user of this machine can read the secret `dkim_key` in {}", key.path().display());
        assert_eq!(output.contains(&warning), is_exposed, "{output}");
    }
}

#[test]
fn without_a_key_there_is_no_record() {
    let folder = tempfile::tempdir().expect("a folder");
    for (settings, setting) in [(&[][..], "smtp_url"), (&MAIL, "dkim_key")] {
        let (code, output) = Program::run(Program::command(folder.path(), &[&["mail", "record"], settings].concat()));
        assert!(
            code == 2 && output.contains(&format!("The setting `{setting}` cannot be used: it is not set")),
            "{output}"
        );
    }
}
