//! Downloads of disk images: whole, a single range, resumed, and very large.

use std::io::{Seek, SeekFrom, Write};
use std::net::TcpStream;
use std::process::Command;

use reqwest::Method;

use crate::harness::{Answer, Program, Service, on_each_database, on_one_database, trailer};

const PATH: &str = "/releases/Troupe-1.4.0.dmg";

async fn part(service: &Service, headers: &[(&str, &str)]) -> Answer {
    service.send(Method::GET, PATH, headers, "").await
}

#[tokio::test]
async fn an_image_is_fully_described_and_cached_forever() {
    on_each_database(async |service| {
        let image = service.publish("1.4.0");
        let listed = service.wait_for_text("/releases.json", "1.4.0").await;
        let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
        let sha256 = listed["releases"][0]["sha256"].as_str().unwrap();
        for method in [Method::GET, Method::HEAD] {
            let answer = service.send(method.clone(), PATH, &[], "").await;
            assert_eq!(answer.status, 200);
            for (name, value) in [
                ("content-type", "application/x-apple-diskimage"),
                ("content-length", "20000"),
                ("accept-ranges", "bytes"),
                ("cache-control", "public, max-age=31536000, immutable"),
                ("content-disposition", "attachment; filename=\"Troupe-1.4.0.dmg\""),
                ("etag", &format!("\"{sha256}\"")),
            ] {
                assert_eq!(answer.header(name), value, "{method} {name}");
            }
            assert!(answer.header("last-modified").ends_with(" GMT"));
            let digest = answer.header("repr-digest");
            assert!(digest.starts_with("sha-256=:") && digest.len() == 9 + 44 + 1, "{digest}");
            assert!(answer.body == if method == Method::GET { image.as_slice() } else { b"" });
        }
        for method in [Method::POST, Method::PUT, Method::DELETE] {
            let answer = service.send(method, PATH, &[], "").await;
            assert_eq!(answer.status, 405);
            assert_eq!(answer.header("allow"), "GET, HEAD");
        }
    })
    .await;
}

#[tokio::test]
async fn a_client_with_a_current_copy_is_not_sent_the_image_again() {
    on_one_database(async |service| {
        service.publish("1.4.0");
        let whole = service.get(PATH).await;
        let (etag, modified) = (whole.header("etag"), whole.header("last-modified"));
        for (headers, status) in [
            (vec![("if-none-match", etag)], 304),
            (vec![("if-none-match", "*")], 304),
            (vec![("if-modified-since", modified)], 304),
            (vec![("if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT")], 200),
            (vec![("if-none-match", "\"other\""), ("if-modified-since", modified)], 200),
        ] {
            let answer = part(service, &headers).await;
            assert_eq!(answer.status, status, "{headers:?}");
            assert_eq!(answer.header("etag"), etag);
            assert_eq!(answer.body.is_empty(), status == 304);
            assert!(
                status != 304 || answer.headers.get("content-length").is_none(),
                "it is not the length of the image"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn a_single_range_is_served_and_several_are_answered_with_the_whole_image() {
    on_one_database(async |service| {
        let image = service.publish("1.4.0");
        for (range, expected, content_range) in [
            ("bytes=0-0", &image[..1], "bytes 0-0/20000"),
            ("bytes=100-199", &image[100..200], "bytes 100-199/20000"),
            ("bytes=19999-", &image[19_999..], "bytes 19999-19999/20000"),
            ("bytes=19000-99999", &image[19_000..], "bytes 19000-19999/20000"),
            ("bytes=-512", &image[19_488..], "bytes 19488-19999/20000"),
            ("bytes=-99999", &image[..], "bytes 0-19999/20000"),
            ("bytes=0-99999999999999999999999", &image[..], "bytes 0-19999/20000"),
        ] {
            let answer = part(service, &[("range", range)]).await;
            assert_eq!(answer.status, 206, "{range}");
            assert_eq!(answer.header("content-range"), content_range);
            assert_eq!(answer.header("content-length"), expected.len().to_string());
            assert!(answer.body == expected, "{range}");
        }
        for range in ["bytes=20000-", "bytes=-0", "bytes=30000-40000"] {
            let answer = part(service, &[("range", range)]).await;
            assert_eq!(answer.status, 416, "{range}");
            assert_eq!(answer.header("content-range"), "bytes */20000");
            assert_eq!(answer.header("cache-control"), "no-store");
            assert!(answer.body.is_empty());
        }
        for range in ["bytes=9-5", "lines=0-9", "bytes", "bytes=a-b", "bytes=0-9, 100-199, -5", "bytes=30000-,40000-"] {
            let answer = part(service, &[("range", range)]).await;
            assert!(answer.status == 200 && answer.body == image, "{range}: {}", answer.status);
            assert_eq!(answer.header("content-type"), "application/x-apple-diskimage");
        }
        let headed = service.send(Method::HEAD, PATH, &[("range", "bytes=0-9")], "").await;
        assert_eq!((headed.status.as_u16(), headed.header("content-length")), (200, "20000"));
    })
    .await;
}

#[tokio::test]
async fn a_range_is_served_only_if_the_client_has_the_rest_of_the_same_image() {
    on_one_database(async |service| {
        let image = service.publish("1.4.0");
        let whole = service.get(PATH).await;
        let (etag, modified) = (whole.header("etag"), whole.header("last-modified"));
        for (had, status) in [
            (etag, 206),
            (modified, 206),
            ("\"other\"", 200),
            (&format!("W/{etag}"), 200),
            ("Sun, 06 Nov 1994 08:49:37 GMT", 200),
        ] {
            let answer = part(service, &[("range", "bytes=10-"), ("if-range", had)]).await;
            assert_eq!(answer.status, status, "{had}");
            assert!(answer.body == if status == 206 { &image[10..] } else { &image[..] });
        }
    })
    .await;
}

#[tokio::test]
async fn names_that_are_no_images_are_unknown() {
    on_one_database(async |service| {
        service.publish("1.4.0");
        for path in [
            "/releases/Troupe.dmg",
            "/releases/.lock",
            "/releases/..%2f..%2fporchlight.db",
            "/releases/%54roupe-1.4.0.dmg",
            "/releases/Troupe-1.4.0.dmg/",
            "/releases/latest/Other.dmg",
            "/releases/latest/",
            "/releases/",
        ] {
            assert_eq!(service.get(path).await.status, 404, "{path}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn curl_resumes_a_download_that_was_cut_off() {
    on_one_database(async |service| {
        let image = service.publish("1.4.0");
        let begun = service.file("begun.dmg", &image[..7_000]);
        let url = format!("http://{}/releases/latest/Troupe.dmg", service.address());
        let done =
            Program::run_to_end(Command::new("curl").args(["-sSfL", "-C", "-", "-o"]).arg(&begun).arg(url)).status;
        assert!(done.success());
        assert!(std::fs::read(begun).unwrap() == image);
    })
    .await;
}

#[tokio::test]
#[ignore = "more than 10 MB: ./test all"]
async fn a_client_that_stops_reading_does_not_block_others() {
    on_one_database(async |service| {
        let image = crate::harness::disk_image(24 * 1024 * 1024, 3);
        let path = service.file("large.dmg", &image);
        let (code, output) = service.release(&["publish", path.to_str().unwrap(), "--version", "1.4.0"]);
        assert_eq!(code, 0, "{output}");
        let mut readers = Vec::new();
        for _ in 0..8 {
            let mut reader = TcpStream::connect(service.address()).unwrap();
            write!(reader, "GET {PATH} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
            readers.push(reader);
        }
        assert!(service.get(PATH).await.body == image);
        assert_eq!(service.get("/").await.status, 200);
        drop(readers);
    })
    .await;
}

/// The peak memory of a process, in KiB.
fn peak_memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let (_, peak) = status.split_once("VmHWM:").unwrap();
    peak.split_whitespace().next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "more than 10 MB: ./test all"]
async fn an_image_of_a_gibibyte_does_not_grow_the_servers_memory() {
    const DATA: u64 = 1024 * 1024 * 1024;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.dmg");
    let mut file = std::fs::File::create(&path).unwrap();
    file.seek(SeekFrom::Start(DATA)).unwrap();
    file.write_all(&trailer(DATA)).unwrap();

    let serve = Program::command(folder.path(), &["serve", "--listen", "127.0.0.1:0", "--ops-listen", "off"]);
    let program = Program::start(serve, "not mailed to anybody");
    let publish = Program::command(folder.path(), &["release", "publish", "large.dmg", "--version", "1.4.0"]);
    let (code, output) = Program::run(publish);
    assert_eq!(code, 0, "{output}");

    let address = program.address();
    let download = |first: u64| {
        let mut stream = TcpStream::connect(address).unwrap();
        let head = format!("GET {PATH} HTTP/1.1\r\nHost: a\r\nRange: bytes={first}-\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        std::io::copy(&mut stream, &mut std::io::sink()).unwrap()
    };
    while download(DATA - 1024 * 1024) < 1024 * 1024 {
        std::thread::yield_now();
    }
    let before = peak_memory(program.id());
    assert!(download(0) > DATA);
    std::thread::scope(|scope| {
        let halves: Vec<_> = (0..8).map(|_| scope.spawn(|| download(DATA - DATA / 8))).collect();
        assert!(halves.into_iter().all(|half| half.join().unwrap() > DATA / 8));
    });
    let grown = peak_memory(program.id()) - before;
    assert!(grown < 32 * 1024, "two gibibytes sent took {grown} KiB more");
}
