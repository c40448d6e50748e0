//! `porchlight health`: asks the running service on this machine over its ops listener.

use std::time::Duration;

use tokio::time::timeout;

use super::{Failure, OrFail, block_on, print_line};
use crate::config::{OpsListen, Settings};
use crate::domain::base_url::local_address;
use crate::probe::get;

/// How long the service may take to respond.
const TIMEOUT: Duration = Duration::from_secs(5);

pub(super) fn run(settings: &Settings, ready: bool) -> Result<(), Failure> {
    let (OpsListen::At(address) | OpsListen::IfFree(address)) = settings.ops.listen else {
        let off = "The service cannot be asked: `ops_listen` is off. Set it to an address such as 127.0.0.1:8081.";
        return Err(Failure::new(off));
    };
    let (address, path) = (local_address(address), if ready { "/readyz" } else { "/healthz" });
    block_on(async {
        let response = match timeout(TIMEOUT, get(address, path, settings.ops.token.as_ref())).await {
            Ok(response) => response.map_err(|error| error.to_string()),
            Err(_) => Err("it took too long".to_owned()),
        };
        let response = response.or_fail(|why| {
            format!(
                "The service does not respond at {address}: {why}. Check that it runs, and that `ops_listen` is the same here."
            )
        })?;
        let (status, body) = (response.status(), response.body().trim());
        if !status.is_success() {
            let code = status.as_u16();
            return Err(Failure::new(format!("The service at {address} responds with {code}: {body}")));
        }
        print_line(body);
        Ok(())
    })
}
