//! `porchlight health`: asks the running service on this machine over its ops listener.

use std::time::Duration;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{Request, Response};
use rustls::RootCertStore;
use tokio::time::timeout;

use super::failure::{Failure, OrFail};
use super::run::block_on;
use super::terminal::print_line;
use crate::config::{OpsListen, Settings};
use crate::domain::network::local_address;
use crate::http_client::{HttpClient, empty_body};

/// How long the service may take to respond.
const TIMEOUT: Duration = Duration::from_secs(5);
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

pub(super) fn run(settings: &Settings, ready: bool) -> Result<(), Failure> {
    let (OpsListen::At(address) | OpsListen::IfFree(address)) = settings.ops.listen else {
        let off = "The service cannot be asked: `ops_listen` is off. Set it to an address such as 127.0.0.1:8081.";
        return Err(Failure::new(off));
    };
    let (address, path) = (local_address(address), if ready { "/readyz" } else { "/healthz" });
    block_on(async {
        let response = ask(&format!("http://{address}{path}"), settings).await.or_fail(|why| {
            format!(
                "The service does not respond at {address}: {why}. Check that it runs, and that `ops_listen` is the same here."
            )
        })?;
        let body = String::from_utf8_lossy(response.body());
        let (status, body) = (response.status(), body.trim());
        if !status.is_success() {
            let code = status.as_u16();
            return Err(Failure::new(format!("The service at {address} responds with {code}: {body}")));
        }
        print_line(body);
        Ok(())
    })
}

async fn ask(url: &str, settings: &Settings) -> Result<Response<Bytes>, String> {
    let mut request = Request::get(url);
    if let Some(token) = &settings.ops.token {
        request = request.header(AUTHORIZATION, format!("Bearer {}", token.expose()));
    }
    let request = request.body(empty_body()).map_err(|error| error.to_string())?;
    // Plain HTTP needs no roots.
    let client = HttpClient::new(RootCertStore::empty()).map_err(|error| error.to_string())?;
    let response = timeout(TIMEOUT, client.fetch(request, MAX_RESPONSE_BYTES)).await;
    response.unwrap_or_else(|_| Err("it took too long".to_owned()))
}
