//! `porchlight health`: asks the running service on this machine over its ops listener.

use std::net::SocketAddr;
use std::time::Duration;

use http::Request;
use http::header::AUTHORIZATION;
use rustls::RootCertStore;
use tokio::time::timeout;

use super::{CommandFailure, block_on, print_line};
use crate::config::{OpsListen, Settings};
use crate::domain::listen_address::local_address;
use crate::http_client::{HttpClient, empty_body};

/// How long the service may take to respond.
const TIMEOUT: Duration = Duration::from_secs(5);
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// Why the service is not well, or cannot be asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum HealthFailure {
    #[error("The service cannot be asked: `ops_listen` is off. Set it to an address such as 127.0.0.1:8081.")]
    Off,
    #[error("The service does not respond at {0}: {1}. Check that it runs, and that `ops_listen` is the same here.")]
    Unreachable(SocketAddr, String),
    #[error("The service at {0} responds with {1}: {2}")]
    Refused(SocketAddr, u16, String),
}

pub(super) fn run(settings: &Settings, ready: bool) -> Result<(), CommandFailure> {
    let (OpsListen::At(address) | OpsListen::IfFree(address)) = settings.ops.listen else {
        return Err(HealthFailure::Off.into());
    };
    let (address, path) = (local_address(address), if ready { "/readyz" } else { "/healthz" });
    block_on(async {
        let unreachable = |why: String| HealthFailure::Unreachable(address, why);
        let mut request = Request::get(format!("http://{address}{path}"));
        if let Some(token) = &settings.ops.token {
            request = request.header(AUTHORIZATION, format!("Bearer {}", token.expose()));
        }
        let request = request.body(empty_body()).map_err(|error| unreachable(error.to_string()))?;
        // Plain HTTP needs no roots.
        let client = HttpClient::new(RootCertStore::empty()).map_err(|error| unreachable(error.to_string()))?;
        let response = timeout(TIMEOUT, client.fetch(request, MAX_RESPONSE_BYTES))
            .await
            .map_err(|_| unreachable("it took too long".to_owned()))?
            .map_err(unreachable)?;
        let body = String::from_utf8_lossy(response.body());
        let body = body.trim();
        if !response.status().is_success() {
            return Err(HealthFailure::Refused(address, response.status().as_u16(), body.to_owned()).into());
        }
        print_line(body);
        Ok(())
    })
}
