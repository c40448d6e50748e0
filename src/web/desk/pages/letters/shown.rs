//! A letter as it arrives, for a frame of a page, and the images in it.

use std::sync::Arc;

use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName};
use serde_json::json;

use crate::actions::render_sample;
use crate::blocking::blocking;
use crate::domain::letters::{Letter, LetterImage};
use crate::site::RenderedMail;
use crate::web::desk::pages::failure::DeskFailure;
use crate::web::desk::pages::visit::Visit;
use crate::web::representation::HTML;

/// Nothing but the letter: no script, and no request to anywhere else.
const POLICY: [(HeaderName, &str); 1] = [(
    CONTENT_SECURITY_POLICY,
    "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; frame-ancestors 'self'; base-uri 'none'; \
     form-action 'none'",
)];

/// Renders a letter as it arrives. Fails with a sentence.
pub(super) fn rendered(visit: &Visit<'_>, letter: &Letter) -> Result<RenderedMail, String> {
    let (app, templates) = (visit.app, visit.app.mail_templates.get());
    let render = || render_sample(&templates, letter, &app.base_url, app.settings.letters_archive, visit.now);
    blocking(render).map_err(|failure| failure.to_string())
}

/// `path` is that of the letter or the draft. `Err`: why there is no letter.
pub(super) fn frame(visit: &Visit<'_>, letter: Result<Letter, String>, path: &str) -> Response {
    let url = |image: &LetterImage| format!("{path}/images/{}", image.content_id());
    let html = letter.and_then(|letter| Ok(rendered(visit, &letter)?.html_with_images(url)));
    let response = match html {
        Ok(html) => (StatusCode::OK, [(CONTENT_TYPE, HTML)], html).into_response(),
        Err(why) => visit.bare_page("draft_problem.html", json!({ "text": why })),
    };
    (POLICY, response).into_response()
}

pub(super) fn image(images: &[Arc<LetterImage>], content_id: &str) -> Result<Response, DeskFailure> {
    let image = images.iter().find(|image| image.content_id() == content_id).ok_or(DeskFailure::NotFound)?;
    Ok(([(CONTENT_TYPE, image.format.as_str())], image.bytes.clone()).into_response())
}
