//! The overview at the desk.

use axum::response::Response;

use super::visit::Visit;
use crate::web::dashboard;
use crate::web::desk::access::ROOT;

pub(super) async fn page(visit: &Visit<'_>, query: Option<&str>) -> Response {
    let frame = visit.frame(ROOT);
    Box::pin(dashboard::dashboard(visit.app, ROOT, &frame, query)).await
}
