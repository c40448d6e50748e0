//! The errors of the desk. They have codes of their own, and are not part of the public API. The detail says what to do next.

use std::io::ErrorKind;

use axum::response::{IntoResponse as _, Response};
use http::header::{ALLOW, CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};

use crate::actions::{ChangeFailure, Failure, PublishFailure};
use crate::domain::limits::MAX_INSTANCE_CHARS;
use crate::domain::releases::PublishRejection;
use crate::domain::text::excerpt;
use crate::store::StoreFailure;
use crate::web::problem::{PROBLEM_HEADERS, ProblemBody, RETRY_AFTER_SECONDS};

/// A code, and the status that it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeskError(&'static str, StatusCode);

impl DeskError {
    pub(crate) const UNAUTHORIZED: Self = Self("unauthorized", StatusCode::UNAUTHORIZED);
    pub(crate) const NOT_FOUND: Self = Self("not_found", StatusCode::NOT_FOUND);
    pub(crate) const METHOD_NOT_ALLOWED: Self = Self("method_not_allowed", StatusCode::METHOD_NOT_ALLOWED);
    pub(crate) const INVALID_PARAMETER: Self = Self("invalid_parameter", StatusCode::BAD_REQUEST);
    pub(crate) const LENGTH_REQUIRED: Self = Self("length_required", StatusCode::LENGTH_REQUIRED);
    pub(crate) const INCOMPLETE: Self = Self("incomplete", StatusCode::BAD_REQUEST);
    pub(crate) const NOT_AN_IMAGE: Self = Self("not_an_image", StatusCode::UNPROCESSABLE_ENTITY);
    pub(crate) const INVALID_NOTES: Self = Self("invalid_notes", StatusCode::UNPROCESSABLE_ENTITY);
    pub(crate) const INVALID_NAME: Self = Self("invalid_name", StatusCode::UNPROCESSABLE_ENTITY);
    pub(crate) const NAME_USED: Self = Self("name_used", StatusCode::CONFLICT);
    pub(crate) const VERSION_USED: Self = Self("version_used", StatusCode::CONFLICT);
    pub(crate) const VERSION_WITHDRAWN: Self = Self("version_withdrawn", StatusCode::CONFLICT);
    pub(crate) const NOT_NEWER: Self = Self("not_newer", StatusCode::CONFLICT);
    pub(crate) const CHANNEL_MISSING: Self = Self("channel_missing", StatusCode::CONFLICT);
    pub(crate) const BUILD_MISSING: Self = Self("build_missing", StatusCode::CONFLICT);
    pub(crate) const SIGNATURE_MISSING: Self = Self("signature_missing", StatusCode::CONFLICT);
    pub(crate) const BUILD_ORDER: Self = Self("build_order", StatusCode::CONFLICT);
    pub(crate) const NO_ROOM: Self = Self("no_room", StatusCode::INSUFFICIENT_STORAGE);
    pub(crate) const NOT_WRITABLE: Self = Self("not_writable", StatusCode::INTERNAL_SERVER_ERROR);
    pub(crate) const BUCKET_UNAVAILABLE: Self = Self("bucket_unavailable", StatusCode::SERVICE_UNAVAILABLE);
    pub(crate) const BUSY: Self = Self("busy", StatusCode::SERVICE_UNAVAILABLE);
    pub(crate) const STOPPING: Self = Self("stopping", StatusCode::SERVICE_UNAVAILABLE);
    pub(crate) const UNAVAILABLE: Self = Self("unavailable", StatusCode::SERVICE_UNAVAILABLE);
    pub(crate) const SERVER_ERROR: Self = Self("server_error", StatusCode::INTERNAL_SERVER_ERROR);
}

/// The error that a request to the desk ends with.
#[derive(Debug)]
pub(crate) struct DeskProblem {
    error: DeskError,
    detail: String,
    /// Of a 405.
    allow: Option<&'static str>,
}

impl DeskProblem {
    pub(crate) fn new(error: DeskError, detail: impl Into<String>) -> Self {
        Self { error, detail: detail.into(), allow: None }
    }

    pub(crate) fn method_not_allowed(allow: &'static str) -> Self {
        let detail = format!("Use one of these methods: {allow}.");
        Self { allow: Some(allow), ..Self::new(DeskError::METHOD_NOT_ALLOWED, detail) }
    }

    /// What a page says instead.
    pub(in crate::web::desk) fn into_parts(self) -> (StatusCode, String) {
        (self.error.1, self.detail)
    }

    /// `path` is that of the request, as it was sent, and without its query.
    pub(crate) fn respond(&self, path: &str) -> Response {
        let DeskError(code, status) = self.error;
        let body = ProblemBody {
            r#type: "about:blank".to_owned(),
            title: status.canonical_reason().unwrap_or_default(),
            status: status.as_u16(),
            detail: &self.detail,
            instance: excerpt(path, MAX_INSTANCE_CHARS),
            code,
            error: &self.detail,
            resolution: None,
            documentation_url: None,
            errors: &[],
        };
        let json = serde_json::to_string_pretty(&body).unwrap_or_default();
        let mut response = (status, PROBLEM_HEADERS, json).into_response();
        let headers = response.headers_mut();
        // A body may be unread, and no further token is tried on the connection.
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, RETRY_AFTER_SECONDS.into());
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"porchlight\""));
        }
        if let Some(allow) = self.allow {
            headers.insert(ALLOW, HeaderValue::from_static(allow));
        }
        response
    }
}

/// What is not the caller's doing is logged, because it may name folders of this machine.
impl From<PublishFailure> for DeskProblem {
    fn from(failure: PublishFailure) -> Self {
        let (error, detail) = match &failure {
            PublishFailure::Rejected(rejection) => return rejection.into(),
            PublishFailure::Name(_) => return Self::new(DeskError::INVALID_NAME, failure.to_string()),
            PublishFailure::NotAnImage { .. } => return Self::new(DeskError::NOT_AN_IMAGE, failure.to_string()),
            PublishFailure::Incomplete { .. } => return Self::new(DeskError::INCOMPLETE, failure.to_string()),
            PublishFailure::NotAllowed => return Self::new(DeskError::UNAUTHORIZED, failure.to_string()),
            PublishFailure::Stopped => return Self::new(DeskError::STOPPING, failure.to_string()),
            PublishFailure::Unreadable { .. } | PublishFailure::Changed(_) => {
                (DeskError::INCOMPLETE, "the body did not arrive. Send it again")
            }
            PublishFailure::Busy(_) => {
                (DeskError::BUSY, "another release is being published right now. Try again when that is finished")
            }
            PublishFailure::NoRoom { .. } => (DeskError::NO_ROOM, FULL),
            PublishFailure::Unwritable { why, .. } if why.kind() == ErrorKind::StorageFull => {
                (DeskError::NO_ROOM, FULL)
            }
            PublishFailure::Unwritable { .. } => {
                (DeskError::NOT_WRITABLE, "the image could not be written. The log of the service says why")
            }
            PublishFailure::Bucket { .. } => {
                (DeskError::BUCKET_UNAVAILABLE, "the bucket could not be used. The log of the service says why")
            }
            PublishFailure::Store(_) => (DeskError::UNAVAILABLE, "the database is unavailable. Try again in a moment"),
        };
        tracing::warn!(%failure, "a release was not published over HTTP");
        Self::new(error, format!("Nothing was published: {detail}."))
    }
}

const FULL: &str = "the disk of the service has too little room for the image. Free up space";
const UNAVAILABLE: &str = "The service is temporarily unavailable. Sending the same request again does no harm.";

impl From<&PublishRejection> for DeskProblem {
    fn from(rejection: &PublishRejection) -> Self {
        let error = match rejection {
            PublishRejection::VersionUsed(_) => DeskError::VERSION_USED,
            PublishRejection::VersionWithdrawn(_) => DeskError::VERSION_WITHDRAWN,
            PublishRejection::NameUsed(_) => DeskError::NAME_USED,
            PublishRejection::NotNewer { .. } => DeskError::NOT_NEWER,
            PublishRejection::PrereleaseInStable(_) => DeskError::CHANNEL_MISSING,
            PublishRejection::BuildMissing { .. } => DeskError::BUILD_MISSING,
            PublishRejection::SignatureMissing { .. } => DeskError::SIGNATURE_MISSING,
            PublishRejection::BuildOrder(_) => DeskError::BUILD_ORDER,
        };
        Self::new(error, format!("Nothing was published: {rejection}."))
    }
}

impl From<ChangeFailure> for DeskProblem {
    fn from(failure: ChangeFailure) -> Self {
        match failure {
            ChangeFailure::Unknown(_) => Self::new(DeskError::NOT_FOUND, failure.to_string()),
            ChangeFailure::Store(failure) => failure.into(),
            // No request of the desk leads to the others.
            other => Failure::Internal(other.to_string()).into(),
        }
    }
}

impl From<Failure> for DeskProblem {
    fn from(failure: Failure) -> Self {
        tracing::warn!(%failure, "a request to the desk failed");
        match failure {
            Failure::Internal(_) => Self::new(DeskError::SERVER_ERROR, "The service failed to process the request."),
            Failure::Unavailable(_) | Failure::NothingPublished => Self::new(DeskError::UNAVAILABLE, UNAVAILABLE),
        }
    }
}

impl From<StoreFailure> for DeskProblem {
    fn from(failure: StoreFailure) -> Self {
        Failure::from(failure).into()
    }
}
