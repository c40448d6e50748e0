//! The service without its listeners: an input takes the way of a request, through `web::handle`.

use std::net::Ipv4Addr;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use porchlight::actions::{
    CachedSummary, CountBuffer, ImageSource, ImageStore, LetterArchive, NewRelease, NewestImage, ReleaseCatalog, ReleaseStore,
    Service, publish_release,
};
use porchlight::clock::Clock;
use porchlight::config::{RawSettings, Settings};
use porchlight::domain::network::{BaseUrl, Peer};
use porchlight::domain::releases::{Channel, Notes, RolloutDays, Version};
use porchlight::site::{Content, Policies, SiteFacts};
use porchlight::store::{Database, Store, Writer};
use porchlight::web::{App, AppState, Router, handle, router};
use tokio::runtime::{Builder, Runtime};

pub struct Site {
    runtime: Runtime,
    app: App,
    router: Router,
    /// The path and the bytes of a published disk image.
    pub image: (String, Vec<u8>),
}

#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("headers of answers are text"))
    }
}

impl Site {
    /// Opens a new SQLite database, publishes a release and builds the site.
    pub fn start() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        let (app, image) = runtime.block_on(start());
        let router = router(&app);
        Self { runtime, app, router, image }
    }

    /// Returns the answer, which is never a server error.
    pub fn answer(&self, request: http::request::Builder, body: &[u8]) -> Answer {
        let request: Request<_> = request
            .header("host", "localhost:8080")
            .body(Full::new(Bytes::copy_from_slice(body)))
            .expect("the parts of the request are valid");
        let shown = format!("{} {}", request.method(), request.uri());
        let answer = self.runtime.block_on(async {
            let (head, body) =
                handle(&self.app, &self.router, Peer::new(Ipv4Addr::LOCALHOST.into()), request).await.into_parts();
            let body = body.collect().await.expect("the body is complete").to_bytes();
            Answer { status: head.status, headers: head.headers, body }
        });
        assert!(!answer.status.is_server_error(), "{shown}: {answer:?}");
        answer
    }
}

async fn start() -> (App, (String, Vec<u8>)) {
    let folder = super::temporary("site");
    std::fs::create_dir_all(&folder).expect("the folder is created");
    let arguments = RawSettings {
        base_url: Some("http://localhost:8080".to_owned()),
        data_dir: Some(folder.display().to_string()),
        client_limits: Some("off".to_owned()),
        ..RawSettings::default()
    };
    let settings = Settings::load(Some("/dev/null".as_ref()), &arguments).expect("the settings are valid");
    let base_url: BaseUrl = settings.base_url.clone().expect("it is set");
    let database = Database::from_settings(&settings).expect("it is SQLite");
    let store = Store::open_for_requests(&database).expect("the database opens");
    store.migrate().await.expect("the database is new");
    let content = Content::from_settings(&settings).expect("the built-in site is there");
    let facts = SiteFacts::read(&content).expect("the built-in site is valid");
    let images = ImageStore::open(&settings.images, Clock::System).expect("it is a folder");

    let mut image: Vec<u8> = (0..=u8::MAX).cycle().take(5000).collect();
    image.extend(b"koly");
    image.resize(image.len() + 508, 0);
    let file = folder.join("image.dmg");
    std::fs::write(&file, &image).expect("the image is written");
    let new_release = NewRelease {
        version: Version::parse("1.4.0").expect("it is a version"),
        notes: Notes::parse("").expect("no notes are short"),
        build: None,
        signature: None,
        minimum_macos: None,
        channel: Channel::stable(),
        critical: false,
        phased: RolloutDays::default(),
        force: false,
    };
    let releases = ReleaseStore { store: &store, images: &images, data_dir: &settings.data_dir, app: &facts.name };
    let published =
        publish_release(&releases, new_release, ImageSource::File(file), Clock::System.now(), |_, _| {}).await;
    let release = published.expect("it is published");

    let catalog = ReleaseCatalog::new(store.clone(), images);
    catalog.refresh().await.expect("the releases are read");
    let (writer, _) = Writer::start(&database, None).expect("the writer starts");
    let letters = LetterArchive::new(store.clone(), false);
    let service = Service {
        store,
        ops_pool: Store::open_for_ops(&database).expect("the database opens"),
        writer,
        clock: Clock::System,
        newest_image: NewestImage::choose(None, &base_url, &facts.name),
        catalog,
        letters,
        certificate: None,
        count_buffer: CountBuffer::default(),
        cached_summary: CachedSummary::default(),
        confirm_updates: false,
        forwards_messages: false,
    };
    let policies = Policies::from_settings(&settings, facts.waitlist);
    let app = AppState::build(&settings, policies, base_url, service, &content, 16).expect("the site builds");
    (app, (format!("/releases/{}", release.file), image))
}
