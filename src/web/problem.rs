//! The errors that callers see (RFC 9457): code, status, title and resolution of each. The API, MCP and
//! forms share them. The detail is written where the error is detected.

use std::borrow::Cow;
use std::time::Duration;

use axum::response::{IntoResponse as _, Response};
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_LANGUAGE, CONTENT_TYPE, HeaderName, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use serde::Serialize;

use super::allowed_methods;
use super::shape::{Field, FieldType, Shape};
use crate::actions::Failure;
use crate::domain::limits;
use crate::domain::network::BaseUrl;
use crate::domain::parse::word_enum;
use crate::domain::rate_limit::retry_after_seconds;
use crate::domain::text::{excerpt, quantity};

word_enum! {
    /// The stable codes of all errors.
    pub(crate) enum ErrorCode {
        InvalidJson = "invalid_json",
        InvalidBody = "invalid_body",
        InvalidEmail = "invalid_email",
        EmptyMessage = "empty_message",
        MessageTooLong = "message_too_long",
        NotFound = "not_found",
        MethodNotAllowed = "method_not_allowed",
        Unavailable = "unavailable",
        ServerError = "server_error",
    }
}

impl ErrorCode {
    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::InvalidJson | Self::InvalidBody | Self::InvalidEmail | Self::EmptyMessage | Self::MessageTooLong => {
                StatusCode::BAD_REQUEST
            }
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::ServerError => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::InvalidJson => "The body is not a JSON object",
            Self::InvalidBody => "The body does not fit this endpoint",
            Self::InvalidEmail => "The email address is not valid",
            Self::EmptyMessage => "The message is empty",
            Self::MessageTooLong => "The message is too long",
            Self::NotFound => "There is nothing at this address",
            Self::MethodNotAllowed => "This address takes another method",
            Self::Unavailable => "Temporarily unavailable",
            Self::ServerError => "Something went wrong on our side",
        }
    }

    /// When the error occurs, for the reference page.
    pub(crate) const fn condition(self) -> &'static str {
        match self {
            Self::InvalidJson => {
                "The body is empty, is not well-formed JSON in UTF-8, is JSON but not one object, or came without \
                 `Content-Type: application/json`."
            }
            Self::InvalidBody => {
                "The object has an unknown or repeated member, a member of the wrong type, a `source` or `name` that is \
                 too long, or the body exceeds the size limit."
            }
            Self::InvalidEmail => "`email` is missing, is not a string, is too long, or is not an address.",
            Self::EmptyMessage => "The contact `message` is missing, or has fewer than 2 characters after trimming.",
            Self::MessageTooLong => "The contact `message` exceeds its limit.",
            Self::NotFound => "No endpoint has this address under `/api/`.",
            Self::MethodNotAllowed => "The endpoint was called with a method other than the one in the `Allow` header.",
            Self::Unavailable => {
                "The client exceeded one of the limits, and nothing was stored; or the service is \
                 temporarily unavailable, and a valid request may have been stored. Sending it again does no harm."
            }
            Self::ServerError => "The service failed. The request itself may have been fine.",
        }
    }

    pub(crate) const fn resolution(self) -> &'static str {
        match self {
            Self::InvalidJson => {
                "Send one JSON object, encoded as UTF-8, with the header Content-Type: application/json."
            }
            Self::InvalidBody => "Send only the documented members, each once and with the documented type and length.",
            Self::InvalidEmail => {
                "Ask the person for their address, in the form name@example.com. Do not respell it; only a space that \
                 you added around it may be left out."
            }
            Self::EmptyMessage => "Send a message of at least 2 characters.",
            Self::MessageTooLong => "Shorten the message to at most 4000 characters, or send it in parts.",
            Self::NotFound => "Check the address against the list of endpoints in the documentation.",
            Self::MethodNotAllowed => "Send the request again with the method named in the Allow header.",
            Self::Unavailable => "Wait as long as the Retry-After header says, then send the same request again.",
            Self::ServerError => "Try again shortly. If it keeps failing, tell the makers through the contact page.",
        }
    }

    pub(crate) fn anchor(self) -> String {
        format!("errors-{}", self.as_str().replace('_', "-"))
    }
}

/// The body of a problem.
pub(crate) const PROBLEM: Shape = Shape {
    name: "Problem",
    description: "What went wrong, in the format of RFC 9457. Programs should branch on `code`.",
    fields: &[
        Field::required("type", FieldType::Uri, "Identifies the kind of error, and documents it."),
        Field::required("title", FieldType::String, "The kind of error in a few words."),
        Field::required("status", FieldType::Integer, "The HTTP status."),
        Field::required("detail", FieldType::String, "What was wrong this time, for people."),
        Field::optional("instance", FieldType::String, "The path that was called, or the beginning of a long one."),
        Field::required(
            "code",
            FieldType::OneOf(|| ErrorCode::ALL.map(ErrorCode::as_str).to_vec()),
            "The stable name of the error, for programs.",
        ),
        Field::optional("error", FieldType::String, "The same as `detail`, for older clients."),
        Field::required("resolution", FieldType::String, "What to do next."),
        Field::optional("documentation_url", FieldType::Uri, "Where all errors are documented."),
        Field::optional("errors", FieldType::ObjectArray(&FIELD_ERROR), "The invalid members, if any."),
    ],
};

const FIELD_ERROR: Shape = Shape {
    name: "FieldError",
    description: "One invalid member.",
    fields: &[
        Field::required("pointer", FieldType::String, "A JSON Pointer to it, as a fragment such as `#/email`."),
        Field::required("detail", FieldType::String, "What is wrong with it."),
    ],
};

/// One invalid member of a body. Never contains the value that was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct FieldError {
    pub pointer: Cow<'static, str>,
    pub detail: String,
}

/// The error that one request ends with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub code: ErrorCode,
    pub detail: String,
    pub resolution: Cow<'static, str>,
    pub errors: Vec<FieldError>,
    /// After how many seconds a request that got a 503 may be repeated.
    pub retry_after: u64,
    /// Whether the client exceeded a limit.
    pub is_over_limit: bool,
}

/// The headers of every problem.
pub(crate) const PROBLEM_HEADERS: [(HeaderName, &str); 3] =
    [(CONTENT_TYPE, "application/problem+json"), (CONTENT_LANGUAGE, "en"), (CACHE_CONTROL, "no-store")];

/// `Retry-After` of a 503 whose cause may take any time.
pub(crate) const RETRY_AFTER_SECONDS: u64 = 5;

#[derive(Serialize)]
pub(crate) struct ProblemBody<'a> {
    pub r#type: String,
    pub title: &'static str,
    pub status: u16,
    pub detail: &'a str,
    pub instance: String,
    pub code: &'static str,
    pub error: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolution: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub documentation_url: Option<String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub errors: &'a [FieldError],
}

impl Problem {
    pub(crate) fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
            resolution: code.resolution().into(),
            errors: Vec::new(),
            retry_after: RETRY_AFTER_SECONDS,
            is_over_limit: false,
        }
    }

    /// The client sent too many requests, and may send the next one after `wait`.
    pub(crate) fn over_limit(wait: Duration) -> Self {
        let retry_after = retry_after_seconds(wait);
        let detail = format!(
            "Too many requests came from your network in a short time. This one was refused, and nothing was stored. \
             Please try again in {}.",
            quantity(retry_after, "second", "seconds")
        );
        Self { retry_after, is_over_limit: true, ..Self::new(ErrorCode::Unavailable, detail) }
    }

    pub(crate) fn resolved_by(self, resolution: impl Into<Cow<'static, str>>) -> Self {
        Self { resolution: resolution.into(), ..self }
    }

    /// The header `Retry-After`, which only a 503 has.
    pub(crate) fn retry_after(&self) -> Option<[(HeaderName, HeaderValue); 1]> {
        (self.code == ErrorCode::Unavailable).then(|| [(RETRY_AFTER, self.retry_after.into())])
    }

    /// Encodes the problem. `path` is that of the request, as it was sent.
    pub(crate) fn json(&self, base_url: &BaseUrl, path: &str) -> String {
        let body = ProblemBody {
            r#type: base_url.to(&format!("/developers#{}", self.code.anchor())),
            title: self.code.title(),
            status: self.code.status().as_u16(),
            detail: &self.detail,
            instance: excerpt(path, limits::MAX_INSTANCE_CHARS),
            code: self.code.as_str(),
            error: &self.detail,
            resolution: Some(&self.resolution),
            documentation_url: Some(base_url.to("/developers#errors")),
            errors: &self.errors,
        };
        serde_json::to_string_pretty(&body).unwrap_or_default()
    }

    pub(crate) fn respond(&self, base_url: &BaseUrl, path: &str) -> Response {
        let allow = (self.code == ErrorCode::MethodNotAllowed).then_some([(ALLOW, allowed_methods::CALL)]);
        (self.code.status(), PROBLEM_HEADERS, allow, self.retry_after(), self.json(base_url, path)).into_response()
    }
}

/// Logs the cause, which the caller must not see.
impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Unavailable(cause) => {
                tracing::warn!(%cause, "request failed: temporarily unavailable");
                Self::new(
                    ErrorCode::Unavailable,
                    "The service is temporarily unavailable. Please try again in a moment; sending twice does no harm.",
                )
            }
            Failure::NothingPublished => {
                Self::new(ErrorCode::Unavailable, "There is no disk image to download yet: none has been published.")
            }
            Failure::Internal(cause) => {
                tracing::error!(%cause, "request failed: internal error");
                Self::new(ErrorCode::ServerError, "The service failed to process the request.")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_name_the_actual_limits() {
        let names = |code: ErrorCode, limit: usize| code.resolution().contains(&format!(" {limit} characters"));
        assert!(names(ErrorCode::EmptyMessage, limits::MIN_MESSAGE_CHARS));
        assert!(ErrorCode::EmptyMessage.condition().contains(&format!(" {} characters", limits::MIN_MESSAGE_CHARS)));
        assert!(names(ErrorCode::MessageTooLong, limits::MAX_MESSAGE_CHARS));
    }

    #[test]
    fn titles_and_codes_are_unique() {
        for (index, code) in ErrorCode::ALL.into_iter().enumerate() {
            for other in &ErrorCode::ALL[..index] {
                assert_ne!(code.as_str(), other.as_str());
                assert_ne!(code.title(), other.title());
            }
            assert!(!code.anchor().contains('_'));
        }
    }
}
