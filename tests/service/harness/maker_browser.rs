//! The browser of a maker: keeps cookies and says where its requests come from, as browsers do.

use std::collections::BTreeMap;
use std::sync::Mutex;

use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, SET_COOKIE};
use url::form_urlencoded;

use super::markup::attributes;
use super::{Answer, Program, Service};

pub struct MakerBrowser<'a> {
    service: &'a Service,
    /// Where it sends requests.
    address: std::net::SocketAddr,
    client: reqwest::Client,
    cookies: Mutex<BTreeMap<String, String>>,
}

impl<'a> MakerBrowser<'a> {
    /// A browser on the machine of the service, which uses the ops listener.
    pub fn on_ops_listener(service: &'a Service) -> Self {
        Self::new(service, service.ops_address())
    }

    /// A browser anywhere, behind a proxy that speaks https.
    pub fn on_public_listener(service: &'a Service) -> Self {
        Self::new(service, service.address())
    }

    fn new(service: &'a Service, address: std::net::SocketAddr) -> Self {
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().expect("a client");
        Self { service, address, client, cookies: Mutex::default() }
    }

    /// A browser that is signed in on the ops listener.
    pub async fn signed_in(service: &'a Service) -> Self {
        let browser = Self::on_ops_listener(service);
        browser.sign_in(&[]).await;
        browser
    }

    /// Makes a link by command, and uses it.
    pub async fn sign_in(&self, arguments: &[&str]) {
        let path = sign_in_path(self.service, arguments);
        assert_eq!(self.get(&path).await.status, 200, "the page with the button");
        let answer = self.post(&path, &[]).await;
        assert_eq!((answer.status.as_u16(), answer.location()), (303, "/desk"), "{}", answer.text());
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[("sec-fetch-site", "none")], "").await
    }

    /// Sends a form of a page of the desk.
    pub async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.post_from(path, fields, &[("sec-fetch-site", "same-origin")]).await
    }

    /// Sends a form with headers that say where from.
    pub async fn post_from(&self, path: &str, fields: &[(&str, &str)], headers: &[(&str, &str)]) -> Answer {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let form = ("content-type", "application/x-www-form-urlencoded");
        self.send(Method::POST, path, &[&[form], headers].concat(), body).await
    }

    /// Sends a form with a file, as a browser without JavaScript does.
    pub async fn post_file(&self, path: &str, fields: &[(&str, &str)], file: (&str, &[u8])) -> Answer {
        let form = MultipartForm::new(fields, file);
        let headers = [("content-type", MultipartForm::TYPE), ("sec-fetch-site", "same-origin")];
        self.send(Method::POST, path, &headers, form.bytes()).await
    }

    /// Sends the first form in a part of a page: what it holds, and more.
    pub async fn submit(&self, html: &str, more: &[(&str, &str)]) -> Answer {
        let form = html.split("</form>").next().expect("a form");
        let (names, values) = (attributes(form, "input", "name"), attributes(form, "input", "value"));
        let held = names.iter().map(String::as_str).zip(values.iter().map(String::as_str));
        let fields: Vec<_> = held.chain(more.iter().copied()).collect();
        self.post(&attributes(form, "form", "action")[0], &fields).await
    }

    pub async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Answer {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a header name");
            map.append(name, HeaderValue::from_str(value).expect("a header value"));
        }
        let cookies: Vec<_> =
            self.cookies.lock().expect("cookies").iter().map(|(name, value)| format!("{name}={value}")).collect();
        if !cookies.is_empty() {
            map.append("cookie", HeaderValue::from_str(&cookies.join("; ")).expect("cookies"));
        }
        let url = format!("http://{}{path}", self.address);
        let response = self.client.request(method, url).headers(map).body(body.into()).send().await;
        let response = response.expect("an answer");
        let (status, headers) = (response.status(), response.headers().clone());
        for cookie in headers.get_all(SET_COOKIE) {
            let cookie = cookie.to_str().expect("a text");
            let (name, value) = cookie.split(';').next().and_then(|pair| pair.split_once('=')).expect("a pair");
            let mut cookies = self.cookies.lock().expect("cookies");
            if cookie.contains("Max-Age=0;") {
                cookies.remove(name);
            } else {
                cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        let body = response.bytes().await.expect("a whole answer").to_vec();
        Answer { status, headers, body }
    }

    /// The names and values of all cookies.
    pub fn cookies(&self) -> BTreeMap<String, String> {
        self.cookies.lock().expect("cookies").clone()
    }

    pub fn set_cookie(&self, name: &str, value: &str) {
        self.cookies.lock().expect("cookies").insert(name.to_owned(), value.to_owned());
    }
}

/// The path of a link that `porchlight desk` prints.
pub fn sign_in_path(service: &Service, arguments: &[&str]) -> String {
    let database = ["--database-url", service.database.url()];
    let output = Program::run_to_end(&mut service.command(&[&["desk"], arguments, &database[..]].concat()));
    let link = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{link}");
    let (_, path) = link.trim().split_once("/desk/").expect("a link to the desk");
    format!("/desk/{path}")
}

/// A form with a file at its end.
pub struct MultipartForm {
    pub before: Vec<u8>,
    pub file: Vec<u8>,
    pub after: Vec<u8>,
}

impl MultipartForm {
    pub const TYPE: &str = "multipart/form-data; boundary=----WebKitFormBoundaryAbC123";
    const BOUNDARY: &str = "------WebKitFormBoundaryAbC123";

    pub fn new(fields: &[(&str, &str)], (name, file): (&str, &[u8])) -> Self {
        let boundary = Self::BOUNDARY;
        let part = |(name, value): &(&str, &str)| {
            let value = value.replace('\n', "\r\n");
            format!("{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        };
        let name = name.replace('"', "%22");
        let head = format!(
            "{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
             Content-Type: application/x-apple-diskimage\r\n\r\n"
        );
        let before = fields.iter().map(part).collect::<String>() + &head;
        Self { before: before.into(), file: file.into(), after: format!("\r\n{boundary}--\r\n").into() }
    }

    pub fn bytes(&self) -> Vec<u8> {
        [&self.before[..], &self.file, &self.after].concat()
    }
}

impl Answer {
    /// Where a redirect leads.
    pub fn location(&self) -> &str {
        self.headers.get("location").map_or("", |location| location.to_str().expect("a text"))
    }
}
