//! The fallback handler, for every path that has no route.

use axum::extract::{Request, State};
use axum::response::Response;

use super::app::App;

/// Responds 404, or for a page or file that was requested with an unsupported method, 405.
pub(crate) async fn fallback(State(app): State<App>, request: Request) -> Response {
    let built = app.built();
    let served = built.served.get(request.uri().path()).map_or(&built.not_found, |path| &path.served);
    served.respond(request.method(), request.headers())
}
