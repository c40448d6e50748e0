//! A client's connection: requests one after another over HTTP/1.1 or HTTP/2, with or without TLS.

use std::net::SocketAddr;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// How clients reach a server.
#[derive(Clone, Default)]
pub enum Transport {
    #[default]
    Plain,
    Tls(TlsConnector),
    /// HTTP/2 over TLS.
    Http2(TlsConnector),
}

pub struct Connection {
    protocol: Protocol,
    buffer: Vec<u8>,
}

enum Protocol {
    Http1(Box<dyn Stream>),
    Http2(SendRequest<Full<Bytes>>),
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

pub struct Response<'a> {
    pub head: &'a str,
    pub body: &'a [u8],
}

impl Connection {
    pub async fn open(address: SocketAddr, transport: &Transport) -> Self {
        let stream = TcpStream::connect(address).await.expect("a connection");
        stream.set_nodelay(true).expect("TCP_NODELAY");
        let protocol = match transport {
            Transport::Plain => Protocol::Http1(Box::new(stream)),
            Transport::Tls(connector) => Protocol::Http1(Box::new(handshake(connector, stream).await)),
            Transport::Http2(connector) => {
                let stream = TokioIo::new(handshake(connector, stream).await);
                let connected = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await;
                let (sender, connection) = connected.expect("an HTTP/2 connection");
                tokio::spawn(connection);
                Protocol::Http2(sender)
            }
        };
        Self { protocol, buffer: Vec::new() }
    }

    /// Sends a request in the form of HTTP/1.1. A response over HTTP/2 is returned in that form, too.
    pub async fn send(&mut self, request: &str) -> Response<'_> {
        self.buffer.clear();
        let head_length = match &mut self.protocol {
            Protocol::Http1(stream) => send_http1(stream.as_mut(), request, &mut self.buffer).await,
            Protocol::Http2(sender) => send_http2(sender, request, &mut self.buffer).await,
        };
        let (head, body) = self.buffer.split_at(head_length);
        Response { head: str::from_utf8(head).expect("a response head"), body }
    }
}

async fn handshake(connector: &TlsConnector, stream: TcpStream) -> impl Stream + use<> {
    let name = ServerName::try_from("localhost").expect("a name");
    connector.connect(name, stream).await.expect("a handshake")
}

/// Returns the length of the response's head.
async fn send_http1(stream: &mut dyn Stream, request: &str, buffer: &mut Vec<u8>) -> usize {
    stream.write_all(request.as_bytes()).await.expect("a request sent");
    stream.flush().await.expect("a request sent");
    let head_length = loop {
        receive(stream, buffer).await;
        if let Some(end) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = str::from_utf8(&buffer[..head_length]).expect("a response head");
    let body_length: usize = header(head, "content-length").map_or(0, |length| length.parse().expect("a length"));
    while buffer.len() < head_length + body_length {
        receive(stream, buffer).await;
    }
    head_length
}

async fn receive(stream: &mut dyn Stream, buffer: &mut Vec<u8>) {
    buffer.reserve(16 << 10);
    let received = stream.read_buf(buffer).await.expect("a response");
    assert_ne!(received, 0, "the server closed the connection");
}

/// Returns the length of the response's head.
async fn send_http2(sender: &mut SendRequest<Full<Bytes>>, request: &str, buffer: &mut Vec<u8>) -> usize {
    let (head, body) = request.split_once("\r\n\r\n").expect("a request");
    let mut lines = head.lines();
    let mut start = lines.next().expect("a request line").split(' ');
    let (method, path) = (start.next().expect("a method"), start.next().expect("a path"));
    let mut request = Request::builder().method(method).uri(format!("https://localhost{path}"));
    for (name, value) in lines.filter_map(|line| line.split_once(": ")).filter(|(name, _)| *name != "host") {
        request = request.header(name, value);
    }
    let request = request.body(Full::from(body.to_owned())).expect("a request");
    let (head, body) = sender.send_request(request).await.expect("a response").into_parts();
    buffer.extend(format!("HTTP/1.1 {} \r\n", head.status.as_u16()).bytes());
    for (name, value) in &head.headers {
        buffer.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    buffer.extend(b"\r\n");
    let head_length = buffer.len();
    buffer.extend(body.collect().await.expect("a body").to_bytes());
    head_length
}

impl Response<'_> {
    pub fn expect_ok(self) -> Self {
        assert!(self.head.starts_with("HTTP/1.1 200 "), "{}{}", self.head, String::from_utf8_lossy(self.body));
        self
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        header(self.head, name)
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut headers = head.lines().filter_map(|line| line.split_once(':'));
    headers.find_map(|(own, value)| own.eq_ignore_ascii_case(name).then_some(value.trim()))
}
