//! One request over plain HTTP, for the service's own ops listener.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST};
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::config::Secret;

/// Responses of the ops listener that are asked for here are small.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// Requests a path, with the token if there is one. Waits as long as the server takes.
pub async fn get(address: SocketAddr, path: &str, token: Option<&Secret>) -> io::Result<Response<String>> {
    let mut request = Request::get(path).header(HOST, address.to_string());
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, format!("Bearer {}", token.expose()));
    }
    let request = request.body(Empty::<Bytes>::new()).map_err(io::Error::other)?;
    let connection = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(connection)).await.map_err(io::Error::other)?;
    let connection = tokio::spawn(connection);
    let (head, body) = sender.send_request(request).await.map_err(io::Error::other)?.into_parts();
    let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await.map_err(io::Error::other)?.to_bytes();
    connection.abort();
    Ok(Response::from_parts(head, String::from_utf8_lossy(&body).into_owned()))
}
