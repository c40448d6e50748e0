//! Images in a bucket of an S3-compatible service.

use std::process::Command;

use reqwest::header::HeaderMap;
use reqwest::{Method, Response, StatusCode};
use serde_json::Value;

use crate::harness::{
    Authority, Bucket, Database, Program, address_in, disk_image, each_migrated_database, folder, wait_for,
};

const IMAGE: &str = "/releases/Troupe-1.4.0.dmg";
const PROXY: &str = "?proxy=true";

/// A database, a bucket, and the commands that use both.
struct Makers {
    folder: tempfile::TempDir,
    database: Database,
    bucket: Bucket,
    options: &'static str,
}

/// `porchlight serve`
struct Site {
    program: Program,
    client: reqwest::Client,
}

impl Makers {
    fn new(database: Database, options: &'static str) -> Self {
        Self { folder: folder::new(), database, bucket: Bucket::new(), options }
    }

    async fn on_sqlite(options: &'static str) -> Self {
        Self::new(Database::migrated_sqlite().await, options)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Program::command(self.folder.path(), arguments);
        command.env("PORCHLIGHT_DATABASE_URL", self.database.url());
        self.bucket.configure(&mut command, self.options);
        command
    }

    fn run(&self, arguments: &[&str]) -> (i32, String) {
        Program::run(self.command(arguments))
    }

    fn image(&self, seed: u8) -> Vec<u8> {
        let image = disk_image(300_000, seed);
        std::fs::write(self.folder.path().join("image.dmg"), &image).unwrap();
        image
    }

    fn publish(&self, version: &str, seed: u8) -> Vec<u8> {
        let image = self.image(seed);
        let (code, output) = self.run(&["release", "publish", "image.dmg", "--version", version]);
        assert_eq!(code, 0, "{output}");
        image
    }

    fn serve(&self) -> Site {
        Site::start(self.command(SERVE))
    }

    #[track_caller]
    fn assert_nothing_is_published(&self) {
        let (code, output) = self.run(&["release", "list", "--json"]);
        assert_eq!((code, output.trim()), (0, "[]"));
    }
}

const SERVE: &[&str] = &["serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--log-format", "logfmt"];

impl Site {
    fn start(command: Command) -> Self {
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        Self { program: Program::start(command, "not mailed to anybody"), client }
    }

    async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> Response {
        let url = format!("http://{}{path}", self.program.address());
        let request = headers
            .iter()
            .fold(self.client.request(method, url), |request, (name, value)| request.header(*name, *value));
        request.send().await.unwrap()
    }

    async fn get(&self, path: &str) -> Response {
        self.send(Method::GET, path, &[]).await
    }

    async fn readiness(&self) -> (u16, String) {
        let url = format!("http://{}/readyz", address_in(self.program.output(), "ops_listen"));
        let response = self.client.get(url).send().await.unwrap();
        let status = response.status().as_u16();
        let report: Value = response.json().await.unwrap();
        (status, report["parts"]["newest_image"].as_str().unwrap().to_owned())
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn a_download_is_redirected_to_a_signed_url_of_the_bucket() {
    for database in each_migrated_database().await {
        let makers = Makers::new(database, "");
        let image = makers.publish("1.4.0", 1);
        let site = makers.serve();
        let latest = site.get("/releases/latest/Troupe.dmg").await;
        assert_eq!((latest.status(), header(latest.headers(), "location")), (StatusCode::FOUND, IMAGE));

        let redirect = site.get(IMAGE).await;
        let url = header(redirect.headers(), "location").to_owned();
        assert_eq!((redirect.status(), header(redirect.headers(), "cache-control")), (StatusCode::FOUND, "no-store"));
        assert!(url.starts_with(&format!("{}/{}/troupe/", Bucket::endpoint(), makers.bucket.name)), "{url}");
        assert!(url.contains("/Troupe-1.4.0.dmg?") && url.contains("X-Amz-Expires=900"), "{url}");
        let download = reqwest::get(&url).await.unwrap();
        assert_eq!(header(download.headers(), "content-type"), "application/x-apple-diskimage");
        let disposition = "attachment; filename=\"Troupe-1.4.0.dmg\"";
        assert_eq!(header(download.headers(), "content-disposition"), disposition);
        assert!(download.bytes().await.unwrap() == image);
        assert_eq!(reqwest::get(url.replace("Expires=900", "Expires=901")).await.unwrap().status(), 403);

        let head = site.send(Method::HEAD, IMAGE, &[]).await;
        assert_eq!(head.status(), StatusCode::OK);
        assert_eq!(header(head.headers(), "content-length"), image.len().to_string());
        assert_eq!(header(head.headers(), "content-disposition"), disposition);
        assert_eq!(header(head.headers(), "cache-control"), "no-store");
        assert!(header(head.headers(), "repr-digest").starts_with("sha-256=:"));
        assert_eq!(site.readiness().await, (200, "ok".to_owned()));
        assert!(!makers.folder.path().join("data/releases").exists(), "no folder is used");

        let (code, output) = makers.run(&["release", "withdraw", "1.4.0", "--yes"]);
        assert_eq!(code, 0, "{output}");
        wait_for("the withdrawal", async || {
            let response = site.get(IMAGE).await;
            (response.status() == StatusCode::GONE).then_some(())
        })
        .await;
        assert_eq!(makers.bucket.objects().len(), 1, "the object stays, as a file does");
    }
}

#[tokio::test]
async fn with_proxy_the_service_sends_the_image_itself() {
    let makers = Makers::on_sqlite(PROXY).await;
    let image = makers.publish("1.4.0", 2);
    let site = makers.serve();
    let whole = site.get(IMAGE).await;
    assert_eq!(whole.status(), StatusCode::OK);
    let etag = header(whole.headers(), "etag").to_owned();
    assert_eq!(header(whole.headers(), "cache-control"), "public, max-age=31536000, immutable");
    assert_eq!(header(whole.headers(), "content-disposition"), "attachment; filename=\"Troupe-1.4.0.dmg\"");
    assert_eq!(header(whole.headers(), "content-type"), "application/x-apple-diskimage");
    assert!(header(whole.headers(), "repr-digest").starts_with("sha-256=:"));
    assert!(whole.bytes().await.unwrap() == image);

    for (range, expected) in
        [("bytes=100-199", 100..200), ("bytes=-5", 299_995..300_000), ("bytes=299999-", 299_999..300_000)]
    {
        let part = site.send(Method::GET, IMAGE, &[("range", range), ("if-range", &etag)]).await;
        assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
        let content_range = format!("bytes {}-{}/300000", expected.start, expected.end - 1);
        assert_eq!(header(part.headers(), "content-range"), content_range);
        assert!(part.bytes().await.unwrap() == image[expected]);
    }
    let other = site.send(Method::GET, IMAGE, &[("range", "bytes=1-2"), ("if-range", "\"other\"")]).await;
    assert_eq!(other.status(), StatusCode::OK);
    let beyond = site.send(Method::GET, IMAGE, &[("range", "bytes=300000-")]).await;
    assert_eq!(beyond.status(), StatusCode::RANGE_NOT_SATISFIABLE);
    assert_eq!(header(beyond.headers(), "content-range"), "bytes */300000");
    let unchanged = site.send(Method::GET, IMAGE, &[("if-none-match", &etag)]).await;
    assert_eq!(unchanged.status(), StatusCode::NOT_MODIFIED);
    let head = site.send(Method::HEAD, IMAGE, &[]).await;
    assert_eq!((head.status(), header(head.headers(), "content-length")), (StatusCode::OK, "300000"));
}

#[tokio::test]
async fn a_bucket_that_fails_leaves_the_pages_and_is_reported() {
    for options in ["", PROXY] {
        let makers = Makers::on_sqlite(options).await;
        makers.publish("1.4.0", 3);
        let site = makers.serve();
        for (command, expected) in [
            ("away", "the bucket is unavailable: "),
            ("fail", "the bucket is unavailable: it answers 503 Service Unavailable"),
            ("damage", "the object in the bucket is another one: its SHA-256 differs"),
            ("truncate", "the object in the bucket is another one: it has 299999 bytes instead of 300000"),
            ("lose", "it is not in the bucket"),
        ] {
            makers.bucket.command(command);
            let response = site.get(IMAGE).await;
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE, "{command}");
            assert_eq!(header(response.headers(), "retry-after"), "60");
            assert_eq!(header(response.headers(), "cache-control"), "no-store");
            let head = site.send(Method::HEAD, IMAGE, &[]).await;
            assert_eq!(head.status(), StatusCode::OK, "HEAD asks the bucket nothing: {command}");
            assert_eq!(header(head.headers(), "content-length"), "300000");
            assert_eq!(site.get("/").await.status(), StatusCode::OK);
            let (status, problem) = site.readiness().await;
            assert_eq!(status, 200, "no other instance would do better");
            assert!(problem.contains(expected) && problem.contains("Troupe-1.4.0.dmg"), "{command}: {problem}");
            let (code, output) = makers.run(&["check"]);
            assert_eq!(code, 1);
            assert!(output.contains(&format!("Downloads fail: s3://{}/troupe/", makers.bucket.name)), "{output}");
            assert!(output.contains(expected), "{command}: {output}");
            makers.bucket.command("work");
        }
    }
}

#[tokio::test]
async fn a_bucket_is_checked_before_anything_is_published() {
    let makers = Makers::on_sqlite("").await;
    let place = format!("s3://{}/troupe", makers.bucket.name);
    let (_, output) = makers.run(&["check"]);
    assert!(output.contains(&format!("{place} can be read")), "{output}");
    makers.bucket.command("fail");
    let (code, output) = makers.run(&["check"]);
    assert_eq!(code, 1);
    assert!(output.contains(&format!("{place} cannot be used: the bucket is unavailable: it answers 503")), "{output}");
    let absent = Makers { bucket: Bucket { name: "absent".to_owned() }, ..makers };
    for arguments in [&["check"][..], &["release", "publish", "image.dmg", "--version", "1.4.0"]] {
        absent.image(0);
        let (code, output) = absent.run(arguments);
        assert_eq!(code, 1);
        assert!(output.contains("the bucket refused the request (404 Not Found, NoSuchBucket)"), "{output}");
    }
}

#[tokio::test]
async fn a_bucket_that_does_not_answer_is_given_up_on() {
    let makers = Makers::on_sqlite(PROXY).await;
    makers.publish("1.4.0", 4);
    let site = makers.serve();
    makers.bucket.command("hang");
    let (image, page, readiness) = tokio::join!(site.get(IMAGE), site.get("/"), site.readiness());
    assert_eq!((image.status(), page.status()), (StatusCode::SERVICE_UNAVAILABLE, StatusCode::OK));
    assert_eq!(readiness, (200, "the newest image was not found in time".to_owned()));
    makers.bucket.command("work");
    assert_eq!(site.get(IMAGE).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn an_image_that_ends_early_is_never_taken_for_a_whole_one() {
    let makers = Makers::on_sqlite(PROXY).await;
    makers.publish("1.4.0", 5);
    let site = makers.serve();
    makers.bucket.command("cut");
    let response = site.get(IMAGE).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(response.bytes().await.is_err(), "the connection is closed before the end");
}

#[tokio::test]
async fn nothing_is_published_that_the_bucket_does_not_have() {
    let makers = Makers::on_sqlite("").await;
    makers.image(6);
    let publish = ["release", "publish", "image.dmg", "--version", "1.4.0"];
    for (command, expected) in [
        ("away", "the bucket is unavailable: "),
        ("fail", "it answers 503 Service Unavailable"),
        ("lie", "the object in the bucket is another one: its SHA-256 differs"),
    ] {
        makers.bucket.command(command);
        let (code, output) = makers.run(&publish);
        assert_eq!(code, 1, "{command}: {output}");
        assert!(
            output.starts_with("Nothing was published, because the image could not be stored as s3://"),
            "{output}"
        );
        assert!(output.contains(expected), "{command}: {output}");
        makers.bucket.command("work");
        makers.assert_nothing_is_published();
    }
    for (variable, value) in [("AWS_ACCESS_KEY_ID", "unknown"), ("AWS_SECRET_ACCESS_KEY", "wrong")] {
        let (code, output) = Program::run({
            let mut command = makers.command(&publish);
            command.env(variable, value);
            command
        });
        assert_eq!(code, 1);
        assert!(output.contains("the bucket refused the request (403 Forbidden"), "{output}");
        assert!(output.contains("check its name, the access key"), "{output}");
        assert!(!output.contains(value) && !output.contains("secret-of-the-tests"), "{output}");
        makers.assert_nothing_is_published();
    }
    // A service that knows no checksums: the image is read back.
    makers.bucket.command("forget");
    let (code, output) = makers.run(&publish);
    assert_eq!(code, 0, "{output}");
}

#[tokio::test]
async fn a_release_is_put_back_only_if_the_bucket_has_its_image() {
    let makers = Makers::on_sqlite("").await;
    makers.publish("1.4.0", 6);
    let withdraw = || assert_eq!(makers.run(&["release", "withdraw", "1.4.0", "--yes"]).0, 0);
    let refuse = |command: &str, expected: &str| {
        makers.bucket.command(command);
        let (code, output) = makers.run(&["release", "restore", "1.4.0"]);
        let sentence = "Nothing was changed: the image Troupe-1.4.0.dmg cannot be read: ";
        assert!(code == 1 && output.starts_with(sentence) && output.contains(expected), "{command}: {output}");
        makers.bucket.command("work");
    };
    withdraw();
    refuse("away", "the bucket is unavailable: ");
    refuse("cut", "end of file before message length reached");
    let (code, output) = makers.run(&["release", "restore", "1.4.0"]);
    assert_eq!(code, 0, "{output}");
    let site = makers.serve();
    assert_eq!(site.get(IMAGE).await.status(), StatusCode::FOUND);

    withdraw();
    refuse("damage", "its SHA-256 differs");
    refuse("truncate", "it has 299999 bytes instead of 300000");
    refuse("lose", "it is not in the bucket");
}

#[tokio::test]
async fn an_object_is_never_overwritten_by_another_image_of_the_same_version() {
    // Two makers publish at the same time: here with a database each, so that neither knows of the other.
    let first = Makers::on_sqlite(PROXY).await;
    let bucket = Bucket { name: first.bucket.name.clone() };
    let second = Makers { bucket, ..Makers::on_sqlite(PROXY).await };
    let image = first.publish("1.4.0", 7);
    second.publish("1.4.0", 8);
    let site = first.serve();
    assert!(site.get(IMAGE).await.bytes().await.unwrap() == image);
}

#[tokio::test]
async fn a_session_token_is_used() {
    let makers = Makers::on_sqlite("").await;
    makers.image(9);
    let with_token = |arguments: &[&str]| {
        let mut command = makers.command(arguments);
        command.env("AWS_SESSION_TOKEN", "token-of-the-tests");
        command
    };
    let (code, output) = Program::run(with_token(&["release", "publish", "image.dmg", "--version", "1.4.0"]));
    assert_eq!(code, 0, "{output}");
    let site = Site::start(with_token(SERVE));
    let url = site.get(IMAGE).await.headers()["location"].to_str().unwrap().to_owned();
    assert!(url.contains("X-Amz-Security-Token=token-of-the-tests"), "{url}");
    assert_eq!(reqwest::get(&url).await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_bucket_with_https_needs_a_certificate_that_the_system_trusts() {
    let makers = Makers::on_sqlite("").await;
    makers.image(14);
    let authority = Authority::new();
    let identity = authority.issue_to(&["localhost"]);
    let endpoint = Bucket::tls_endpoint(&identity);
    let publish = |trusted: &Authority| {
        let mut command = makers.command(&["release", "publish", "image.dmg", "--version", "1.4.0"]);
        command.env("AWS_ENDPOINT_URL", &endpoint).env("SSL_CERT_FILE", trusted.path()).env_remove("SSL_CERT_DIR");
        Program::run(command)
    };
    let (code, output) = publish(&Authority::new());
    assert_eq!(code, 1);
    assert!(output.contains("the bucket is unavailable: invalid peer certificate"), "{output}");
    let (code, output) = publish(&authority);
    assert_eq!(code, 0, "{output}");
    assert_eq!(makers.bucket.objects().len(), 1);
}

#[tokio::test]
async fn a_key_is_needed_only_for_images_and_never_shown() {
    let makers = Makers::on_sqlite("").await;
    let without_key = |arguments: &[&str]| {
        let mut command = makers.command(arguments);
        command.env_remove("AWS_SECRET_ACCESS_KEY");
        Program::run(command)
    };
    assert_eq!(without_key(&["people", "list"]).0, 0);
    for arguments in [&["serve"][..], &["release", "publish", "image.dmg", "--version", "1.0.0"], &["backup", "b"]] {
        let (code, output) = without_key(arguments);
        assert_ne!(code, 0, "{arguments:?}");
        let sentence = "The setting `releases_url` cannot be used: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY belong";
        assert!(output.contains(sentence), "{output}");
    }
    for arguments in [&["config", "show"][..], &["config", "show", "--json"], &["check"]] {
        let (_, output) = makers.run(arguments);
        assert!(!output.contains("secret-of-the-tests"), "{output}");
    }
    let (_, shown) = makers.run(&["config", "show"]);
    assert!(shown.contains(&format!("s3://{}/troupe  (PORCHLIGHT_RELEASES_URL)", makers.bucket.name)), "{shown}");
    assert!(shown.contains("releases_dir     none"), "{shown}");
}

#[tokio::test]
async fn the_privacy_page_names_the_host_of_the_bucket_unless_the_service_sends_the_image() {
    let makers = Makers::on_sqlite("").await;
    makers.publish("1.4.0", 10);
    for (options, names_it) in [("", true), (PROXY, false)] {
        let mut command = makers.command(SERVE);
        makers.bucket.configure(&mut command, options);
        let site = Site::start({
            command.env("AWS_ENDPOINT_URL", "https://files.example:8443");
            command
        });
        let page = site.get("/privacy.md").await.text().await.unwrap();
        assert_eq!(page.contains("it comes from files.example, and"), names_it, "{page}");
    }
}

#[tokio::test]
async fn a_backup_leaves_the_images_in_the_bucket_and_names_what_is_missing() {
    let makers = Makers::on_sqlite("").await;
    makers.publish("1.4.0", 11);
    let (code, output) = makers.run(&["backup", "first"]);
    assert_eq!(code, 0, "{output}");
    let place = format!("Troupe-1.4.0.dmg is hosted at s3://{}/troupe/", makers.bucket.name);
    assert!(output.contains(&place) && output.contains("is not in the backup"), "{output}");
    assert!(std::fs::read_dir(makers.folder.path().join("first/releases")).unwrap().next().is_none());

    // The same bucket, a new database.
    let restored = Makers { database: Database::sqlite(), ..makers };
    let (code, output) = restored.run(&["restore", "first"]);
    assert_eq!(code, 0, "{output}");
    restored.bucket.command("lose");
    let (code, output) = restored.run(&["backup", "second"]);
    assert_eq!(code, 1);
    assert!(output.contains("some images are missing: Troupe-1.4.0.dmg (it is not in the bucket)"), "{output}");
    let again = Makers { database: Database::sqlite(), ..restored };
    let (code, output) = again.run(&["restore", "first"]);
    assert_eq!(code, 1);
    assert!(output.contains("images are missing in s3://") && output.contains("(it is not in the bucket)"), "{output}");
}

#[tokio::test]
async fn the_images_of_a_backup_are_restored_to_a_bucket() {
    let makers = Makers::on_sqlite(PROXY).await;
    let image = makers.image(12);
    let in_folder = |arguments: &[&str]| {
        let mut command = makers.command(arguments);
        command.env_remove("PORCHLIGHT_RELEASES_URL");
        let (code, output) = Program::run(command);
        assert_eq!(code, 0, "{output}");
    };
    in_folder(&["release", "publish", "image.dmg", "--version", "1.4.0"]);
    in_folder(&["backup", "copy"]);
    assert!(makers.bucket.objects().is_empty());

    let restored = Makers { database: Database::sqlite(), ..makers };
    let (code, output) = restored.run(&["restore", "copy"]);
    assert_eq!(code, 0, "{output}");
    let site = restored.serve();
    assert!(site.get(IMAGE).await.bytes().await.unwrap() == image);
}

#[tokio::test]
async fn downloads_from_the_bucket_are_counted() {
    let makers = Makers::on_sqlite("").await;
    makers.publish("1.4.0", 13);
    let site = makers.serve();
    site.get(IMAGE).await;
    site.send(Method::GET, IMAGE, &[("range", "bytes=100-")]).await;
    site.send(Method::HEAD, IMAGE, &[]).await;
    let metrics = format!("http://{}/metrics", address_in(site.program.output(), "ops_listen"));
    let counted = wait_for("the count", async || {
        let text = reqwest::get(&metrics).await.unwrap().text().await.unwrap();
        text.lines().find(|line| line.contains("1.4.0")).map(str::to_owned)
    });
    let counted = counted.await;
    assert!(counted.ends_with(" 1"), "a resumed download and a HEAD request are not counted: {counted}");
}
