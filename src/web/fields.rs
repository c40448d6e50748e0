//! The fields of a request, and everything that is wrong with them, in the documented order of checks: unknown fields and
//! types first, then the email address, then the message.

use std::collections::HashSet;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::value::RawValue;

use super::json::{self, Members, NotAnObject};
use super::problem::{ErrorCode, FieldError, Problem};
use super::shape::Field;
use crate::domain::limits;
use crate::domain::mail::EmailAddress;
use crate::domain::text::{InvalidMessage, MessageText, TooLong, excerpt, quantity};

/// A value as it was sent.
#[derive(Debug)]
enum RawField {
    Text(String),
    Flag(bool),
    /// A field of an HTML form: a text, or a checkbox.
    Form(String),
    Other,
}

/// The fields that have not been read yet, and the errors found so far.
#[derive(Debug)]
pub(crate) struct Fields {
    unread: Vec<(String, RawField)>,
    errors: Vec<InvalidField>,
}

#[derive(Debug)]
struct InvalidField {
    code: ErrorCode,
    resolution: &'static str,
    error: FieldError,
}

/// What to do if no address was sent. If a wrong one was, [`ErrorCode::resolution`] says to ask the person.
const SEND_EMAIL: &str =
    "Send `email`, the person's own address, as a string in the form name@example.com. Never make one up.";

/// What is percent-encoded in a fragment: all but the unreserved characters (RFC 3986, section 2.3).
const NOT_IN_FRAGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

impl Fields {
    pub(crate) fn parse_body(body: &[u8]) -> Result<Self, Problem> {
        Members::parse(body).map(|members| Self::from_members(&members)).map_err(not_an_object)
    }

    pub(crate) const fn empty() -> Self {
        Self { unread: Vec::new(), errors: Vec::new() }
    }

    pub(crate) fn from_members(members: &Members<'_>) -> Self {
        let unread = members.0.iter().map(|(name, value)| (name.to_string(), RawField::from(*value))).collect();
        Self { unread, errors: Vec::new() }
    }

    pub(crate) fn from_form(pairs: impl Iterator<Item = (String, String)>) -> Self {
        Self { unread: pairs.map(|(name, value)| (name, RawField::Form(value))).collect(), errors: Vec::new() }
    }

    pub(crate) fn email(&mut self, field: &Field) -> Option<EmailAddress> {
        let code = ErrorCode::InvalidEmail;
        let detail = match self.take_filled(field) {
            None => "The email address is missing.",
            Some(RawField::Text(text) | RawField::Form(text)) => {
                let refused = |why| self.error(code, field, format!("The email address is not valid: {why}."));
                return EmailAddress::parse(&text).map_err(refused).ok();
            }
            Some(_) => "The email address must be a string.",
        };
        self.error_resolved_by(SEND_EMAIL, code, field, detail.to_owned());
        None
    }

    pub(crate) fn message(&mut self, field: &Field) -> Option<MessageText> {
        let text = match self.take_filled(field) {
            None => {
                self.error(ErrorCode::EmptyMessage, field, "The message is missing.".to_owned());
                return None;
            }
            Some(RawField::Text(text) | RawField::Form(text)) => text,
            Some(_) => {
                self.invalid(field, "must be a string");
                return None;
            }
        };
        let code = |why: InvalidMessage| match why {
            InvalidMessage::Empty => ErrorCode::EmptyMessage,
            InvalidMessage::TooLong(_) => ErrorCode::MessageTooLong,
        };
        MessageText::parse(&text).map_err(|why| self.error(code(why), field, why.to_string())).ok()
    }

    pub(crate) fn text<T>(&mut self, field: &Field, parse: impl FnOnce(&str) -> Result<T, TooLong>) -> Option<T> {
        let text = self.string(field)?;
        parse(&text).map_err(|why| self.invalid(field, &format!("is too long: {why}"))).ok()
    }

    pub(crate) fn string(&mut self, field: &Field) -> Option<String> {
        if let RawField::Text(text) | RawField::Form(text) = self.take(field)? {
            return Some(text);
        }
        self.invalid(field, "must be a string");
        None
    }

    pub(crate) fn flag(&mut self, field: &Field) -> bool {
        match self.take(field) {
            None => false,
            Some(RawField::Flag(flag)) => flag,
            Some(RawField::Form(text)) if text == "on" => true,
            Some(_) => {
                self.invalid(field, "must be true or false");
                false
            }
        }
    }

    /// Returns what was parsed, which is there if no field is wrong. Any field that is still unread is unknown. `known` are
    /// the fields that the request may have.
    pub(crate) fn finish<T>(self, known: &[Field], parsed: Option<T>) -> Result<T, Problem> {
        let code = ErrorCode::InvalidBody;
        let unknown = unknown_members(&self.unread);
        let mut errors: Vec<_> =
            unknown.map(|error| InvalidField { code, resolution: code.resolution(), error }).collect();
        errors.extend(self.errors);
        // Stable, so that errors of one check stay in the order of the fields.
        errors.sort_by_key(|invalid| invalid.code != ErrorCode::InvalidBody);
        let mut members = HashSet::new();
        errors.retain(|invalid| members.insert(invalid.error.pointer.clone()));
        let Some(InvalidField { code, error: first, .. }) = errors.first() else {
            return parsed.ok_or_else(|| Problem::new(ErrorCode::InvalidBody, "A member is missing."));
        };
        let detail = match errors.len() - 1 {
            0 => first.detail.clone(),
            more => format!("{} `errors` has {more} more.", first.detail),
        };
        let mut resolutions = Vec::new();
        for InvalidField { code, resolution, .. } in &errors {
            let resolution =
                if *code == ErrorCode::InvalidBody { body_resolution(known) } else { (*resolution).to_owned() };
            if !resolutions.contains(&resolution) {
                resolutions.push(resolution);
            }
        }
        let problem = Problem::new(*code, detail).resolved_by(resolutions.join(" "));
        Err(Problem { errors: errors.into_iter().map(|invalid| invalid.error).collect(), ..problem })
    }

    /// Removes and returns the value of a field. A field that appears more than once is an error.
    fn take(&mut self, field: &Field) -> Option<RawField> {
        let mut values = self.unread.extract_if(.., |(name, _)| name == field.name);
        let value = values.next().map(|(_, value)| value);
        if values.count() > 0 {
            self.invalid(field, "appears more than once");
        }
        value
    }

    /// As `take`, but an empty text counts as not sent, as in a form.
    fn take_filled(&mut self, field: &Field) -> Option<RawField> {
        self.take(field).filter(|value| !matches!(value, RawField::Text(text) if text.is_empty()))
    }

    pub(crate) fn invalid(&mut self, field: &Field, what: &str) {
        self.error(ErrorCode::InvalidBody, field, format!("{} {what}.", field_label(field)));
    }

    fn error(&mut self, code: ErrorCode, field: &Field, detail: String) {
        self.error_resolved_by(code.resolution(), code, field, detail);
    }

    fn error_resolved_by(&mut self, resolution: &'static str, code: ErrorCode, field: &Field, detail: String) {
        let error = FieldError { pointer: format!("#/{}", field.name).into(), detail };
        self.errors.push(InvalidField { code, resolution, error });
    }
}

/// Names the first unknown members, as far as an error may be long, and counts the others.
fn unknown_members(unread: &[(String, RawField)]) -> impl Iterator<Item = FieldError> {
    let (mut named, mut bytes) = (Vec::new(), 0);
    for (name, _) in unread.iter().take(limits::MAX_NAMED_MEMBERS) {
        let name = excerpt(name, limits::MAX_NAMED_MEMBER_CHARS);
        let pointer = name.replace('~', "~0").replace('/', "~1");
        let pointer = format!("#/{}", utf8_percent_encode(&pointer, NOT_IN_FRAGMENT));
        let detail = format!("The member `{name}` is unknown.");
        bytes += pointer.len() + detail.len();
        if bytes > limits::MAX_NAMED_MEMBERS_BYTES {
            break;
        }
        named.push(FieldError { pointer: pointer.into(), detail });
    }
    let more = unread.len() - named.len();
    let others = (more > 0).then(|| {
        let detail = format!("{} unknown, too.", quantity(more as u64, "more member is", "more members are"));
        FieldError { pointer: "#".into(), detail }
    });
    named.into_iter().chain(others)
}

/// What a body may contain.
fn body_resolution(known: &[Field]) -> String {
    let members: Vec<_> = known
        .iter()
        .map(|field| format!("`{}` ({})", field.name, if field.required { "required" } else { "optional" }))
        .collect();
    format!("Send only these members, each once and with the documented type and length: {}.", members.join(", "))
}

/// The name of a field in an error message, which a form shows beside the field.
fn field_label(field: &Field) -> String {
    match field.name {
        "email" => "The email address".to_owned(),
        "name" => "The name".to_owned(),
        "message" => "The message".to_owned(),
        other => format!("`{other}`"),
    }
}

impl From<&RawValue> for RawField {
    fn from(value: &RawValue) -> Self {
        match value.get() {
            "true" => Self::Flag(true),
            "false" => Self::Flag(false),
            _ => json::as_string(value).map_or(Self::Other, Self::Text),
        }
    }
}

fn not_an_object(why: NotAnObject) -> Problem {
    let detail = match why {
        NotAnObject::NotUtf8 => "The body is not UTF-8.",
        NotAnObject::Empty => "The body is empty.",
        NotAnObject::Malformed => "The body is not well-formed JSON.",
        NotAnObject::TooDeep => {
            let levels = limits::MAX_JSON_DEPTH;
            return Problem::new(ErrorCode::InvalidJson, format!("The body nests deeper than {levels} levels."));
        }
        NotAnObject::LoneSurrogate => "The body contains a string with a lone surrogate.",
        NotAnObject::Array => "The body is a JSON array, not an object.",
        NotAnObject::OtherValue => "The body is a JSON value, but not an object.",
    };
    Problem::new(ErrorCode::InvalidJson, detail)
}
