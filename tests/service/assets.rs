//! Files that makers put into `assets/`.

use std::fs;
use std::path::Path;

use porchlight::config::RawSettings;
use reqwest::Method;

use crate::harness::{Program, Service, on_one_database_with, raw};

fn write(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    let path = folder.join("assets").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Of a public site: in a preview nothing is stored.
fn settings(folder: &Path) -> RawSettings {
    let base_url = Some("http://troupe.example".to_owned());
    RawSettings { base_url, site_dir: Some(folder.display().to_string()), ..RawSettings::default() }
}

fn page(body: &str) -> String {
    format!("---\ntitle: Film\ndescription: A page of the tests.\nlast_updated: 2026-11-18\n---\n# Film\n\n{body}\n")
}

/// The paths that a page links to, and that start with this.
async fn links(service: &Service, page: &str, start: &str) -> Vec<String> {
    let html = service.get(page).await.text();
    let paths = html.split('"').filter(|part| part.starts_with(start));
    paths.map(str::to_owned).collect()
}

#[tokio::test]
async fn every_asset_has_a_path_for_good_and_one_that_is_revalidated() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "shots/one two.png", "picture");
    write(folder.path(), "film.mp4", "a film");
    fs::create_dir(folder.path().join("pages")).unwrap();
    let body = "[film]({{ asset(\"film.mp4\") }}) [shot]({{ asset(\"shots/one two.png\") }})";
    fs::write(folder.path().join("pages/film.md"), page(body)).unwrap();
    on_one_database_with(settings(folder.path()), async |service| {
        for (start, stable, media_type) in [
            ("/assets/shots/one", "/assets/shots/one%20two.png", "image/png"),
            ("/assets/film.", "/assets/film.mp4", "video/mp4"),
        ] {
            let hashed = links(service, "/film", start).await.remove(0);
            let [for_good, revalidated] = [service.get(&hashed).await, service.get(stable).await];
            assert_eq!(for_good.header("cache-control"), "public, max-age=31536000, immutable", "{hashed}");
            assert_eq!(revalidated.header("cache-control"), "no-cache", "{stable}");
            assert_eq!((revalidated.status.as_u16(), &revalidated.body), (200, &for_good.body));
            assert_eq!([for_good.media_type(), revalidated.media_type()], [media_type; 2]);
            let known = [("if-none-match", revalidated.header("etag"))];
            assert_eq!(service.send(Method::GET, stable, &known, "").await.status, 304);
        }
        assert_eq!(service.get("/assets/style.css").await.media_type(), "text/css");
        let policy = service.get("/film").await.header("content-security-policy").to_owned();
        assert!(policy.contains("; media-src 'self';"), "{policy}");
    })
    .await;
}

#[tokio::test]
async fn a_player_may_skip_to_any_part_of_an_asset() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "film.mp4", "0123456789");
    write(folder.path(), "words.vtt", format!("WEBVTT {}", "word ".repeat(500)));
    on_one_database_with(settings(folder.path()), async |service| {
        let get = async |path: &str, headers: &[(&str, &str)]| service.send(Method::GET, path, headers, "").await;
        let film = get("/assets/film.mp4", &[]).await;
        assert_eq!(film.header("accept-ranges"), "bytes");
        let etag = film.header("etag");
        for (headers, status, range, body) in [
            (&[("range", "bytes=2-4")][..], 206, "bytes 2-4/10", "234"),
            (&[("range", "bytes=7-")], 206, "bytes 7-9/10", "789"),
            (&[("range", "bytes=-2"), ("if-range", etag)], 206, "bytes 8-9/10", "89"),
            (&[("range", "bytes=-2"), ("if-range", "\"other\"")], 200, "", "0123456789"),
            (&[("range", "bytes=0-1,4-5")], 200, "", "0123456789"),
            (&[("range", "bytes=10-")], 416, "bytes */10", ""),
            (&[("range", "bytes=2-4"), ("if-none-match", etag)], 304, "", ""),
        ] {
            let answer = get("/assets/film.mp4", headers).await;
            let answered = (answer.status.as_u16(), answer.header("content-range"), answer.text());
            assert_eq!(answered, (status, range, body.to_owned()), "{headers:?}");
        }
        let head = service.send(Method::HEAD, "/assets/film.mp4", &[("range", "bytes=2-4")], "").await;
        assert_eq!((head.status.as_u16(), head.header("content-length")), (200, "10"));

        let compressed = get("/assets/words.vtt", &[("accept-encoding", "gzip")]).await;
        assert_eq!(compressed.header("content-encoding"), "gzip");
        let part = [("accept-encoding", "gzip"), ("range", "bytes=0-5")];
        let part = get("/assets/words.vtt", &part).await;
        assert_eq!(
            (part.header("content-encoding"), part.text()),
            ("", "WEBVTT".to_owned()),
            "a range of what is read"
        );
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_an_asset_is_named_while_the_rest_is_served() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "shot.png", "picture");
    let assets = folder.path().join("assets");
    fs::File::create(assets.join("film.mp4")).unwrap().set_len(100 * 1024 * 1024 + 1).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", assets.join("out.txt")).unwrap();
    std::os::unix::fs::symlink("nowhere", assets.join("gone.txt")).unwrap();
    for pipe in ["pipe.txt", "icon.svg"] {
        rustix::fs::mkfifoat(rustix::fs::CWD, assets.join(pipe), rustix::fs::Mode::RUSR).unwrap();
    }
    let site_dir = folder.path().display().to_string();
    let (code, output) = Program::run(Program::command(folder.path(), &["check", "--site-dir", &site_dir]));
    assert_eq!(code, 0, "{output}");
    for sentence in [
        "assets/film.mp4 is not used: it is larger than 100 MiB.",
        "assets/out.txt is not used: it leads out of the site's folder.",
        "assets/gone.txt is not used: it is not a file.",
        "assets/pipe.txt is not used: it is not a file.",
        "assets/icon.svg is not used: it is not a file.",
    ] {
        assert!(output.contains(sentence), "{sentence}\n{output}");
    }
    on_one_database_with(settings(folder.path()), async |service| {
        assert_eq!(service.get("/assets/shot.png").await.text(), "picture");
        assert!(service.get("/assets/icon.svg").await.text().contains("A lamp above a small stage"));
        assert_eq!(service.get("/assets/out.txt").await.status, 404);
    })
    .await;

    fs::create_dir(folder.path().join("pages")).unwrap();
    for (name, why) in [
        ("film.mp4", "assets/film.mp4 cannot be used: it is larger than 100 MiB."),
        ("shto.png", "there is no asset shto.png. Did you mean `shot.png`?"),
    ] {
        fs::write(folder.path().join("pages/film.md"), page(&format!("{{{{ asset(\"{name}\") }}}}"))).unwrap();
        let (code, output) = Program::run(Program::command(folder.path(), &["check", "--site-dir", &site_dir]));
        assert!(code == 1 && output.contains("pages/film.md has a fault in line ") && output.contains(why), "{output}");
    }
}

#[tokio::test]
async fn pages_from_before_a_change_keep_their_assets() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "shot.txt", "before");
    fs::create_dir(folder.path().join("pages")).unwrap();
    fs::write(folder.path().join("pages/film.md"), page("[shot]({{ asset(\"shot.txt\") }})")).unwrap();
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--site-dir", ".", "--watch"];
    let mut program = Program::start(Program::command(folder.path(), &arguments), "not mailed to anybody");
    let address = program.address();
    let get =
        async |path: &str| raw(address, &format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")).await;
    let linked = async || {
        let html = get("/film").await;
        html.split('"').find(|part| part.starts_with("/assets/shot.")).expect("a link").to_owned()
    };
    let before = linked().await;
    write(folder.path(), "shot.txt", "after it");
    program.wait_for_output("site rebuilt");
    let after = linked().await;
    assert_ne!(before, after);
    for (path, words) in [(before.as_str(), "before"), (&after, "after it"), ("/assets/shot.txt", "after it")] {
        assert!(get(path).await.ends_with(&format!("\r\n\r\n{words}")), "{path}");
    }
}
