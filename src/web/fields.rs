//! The fields of a request, parsed one by one in the documented order of checks: unknown fields and
//! types first, then the email address, then the message.

use serde_json::value::RawValue;

use super::json::{self, Members, Name, NotAnObject};
use super::problem::{ErrorCode, FieldError, Problem};
use super::shape::Field;
use crate::domain::email::EmailAddress;
use crate::domain::limits;
use crate::domain::text::{InvalidMessage, MessageText, TooLong};

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
    unread: Vec<(Name<'static>, RawField)>,
    errors: Vec<FieldError>,
}

/// The email address of a request. It is parsed after the other fields have been checked.
#[derive(Debug)]
pub(crate) struct UnparsedEmail(Option<RawField>);

impl Fields {
    pub(crate) fn parse_body(body: &[u8]) -> Result<Self, Problem> {
        Members::parse(body).map(|members| Self::from_members(&members)).map_err(not_an_object)
    }

    pub(crate) const fn empty() -> Self {
        Self { unread: Vec::new(), errors: Vec::new() }
    }

    pub(crate) fn from_members(members: &Members<'_>) -> Self {
        let unread =
            members.0.iter().map(|(name, value)| (name.clone().into_owned(), RawField::from(*value))).collect();
        Self { unread, errors: Vec::new() }
    }

    pub(crate) fn from_form(pairs: impl Iterator<Item = (String, String)>) -> Self {
        Self { unread: pairs.map(|(name, value)| (name.into(), RawField::Form(value))).collect(), errors: Vec::new() }
    }

    pub(crate) fn email(&mut self, field: &Field) -> UnparsedEmail {
        UnparsedEmail(self.take(field))
    }

    pub(crate) fn text<T>(&mut self, field: &Field, parse: impl FnOnce(&str) -> Result<T, TooLong>) -> Option<T> {
        let text = self.string(field)?;
        parse(&text).map_err(|why| self.error(field, format!("{} is too long: {why}.", field_label(field)))).ok()
    }

    pub(crate) fn string(&mut self, field: &Field) -> Option<String> {
        if let RawField::Text(text) | RawField::Form(text) = self.take(field)? {
            return Some(text);
        }
        self.error(field, format!("{} must be a string.", field_label(field)));
        None
    }

    pub(crate) fn flag(&mut self, field: &Field) -> bool {
        match self.take(field) {
            None => false,
            Some(RawField::Flag(flag)) => flag,
            Some(RawField::Form(text)) if text == "on" => true,
            Some(_) => {
                self.error(field, format!("{} must be true or false.", field_label(field)));
                false
            }
        }
    }

    /// Returns the errors found so far. Any field that is still unread is unknown, which is one.
    pub(crate) fn finish(mut self) -> Result<(), Problem> {
        if !self.unread.is_empty() {
            let detail = "There is an unknown member.".to_owned();
            self.errors.push(FieldError { pointer: "#".into(), detail });
        }
        if self.errors.is_empty() {
            return Ok(());
        }
        let detail = self.errors.iter().map(|error| error.detail.as_str()).collect::<Vec<_>>().join(" ");
        Err(Problem { errors: self.errors, ..Problem::new(ErrorCode::InvalidBody, detail) })
    }

    /// Removes and returns the value of a field. A field that appears more than once is an error.
    fn take(&mut self, field: &Field) -> Option<RawField> {
        let mut values = self.unread.extract_if(.., |(name, _)| *name == *field.name);
        let value = values.next().map(|(_, value)| value);
        if values.count() > 0 {
            self.error(field, format!("{} appears more than once.", field_label(field)));
        }
        value
    }

    fn error(&mut self, field: &Field, detail: String) {
        self.errors.push(FieldError { pointer: format!("#/{}", field.name).into(), detail });
    }
}

impl UnparsedEmail {
    pub(crate) fn parse(self) -> Result<EmailAddress, Problem> {
        let invalid = |detail: String| Problem::for_member(ErrorCode::InvalidEmail, "email", detail);
        match self.0 {
            None => Err(invalid("The email address is missing.".to_owned())),
            Some(RawField::Text(text) | RawField::Form(text)) => {
                EmailAddress::parse(&text).map_err(|why| invalid(format!("The email address is not valid: {why}.")))
            }
            Some(_) => Err(invalid("The email address must be a string.".to_owned())),
        }
    }
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

/// Parses a required message. A missing one is treated as empty.
pub(crate) fn parse_message(message: Option<&str>) -> Result<MessageText, Problem> {
    MessageText::parse(message.unwrap_or_default()).map_err(|why| {
        let code = match why {
            InvalidMessage::Empty => ErrorCode::EmptyMessage,
            InvalidMessage::TooLong(_) => ErrorCode::MessageTooLong,
        };
        Problem::for_member(code, "message", why.to_string())
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::consent::Via;
    use crate::web::endpoints::{parse_contact_message, parse_download_order};
    use crate::web::json::comparisons;

    #[test]
    fn the_fields_of_a_request_are_read_in_linear_time() {
        let (members, count) = comparisons::many_members();
        let body = format!(r#"{{"email":"ada@example.com","message":"Hello",{members}}}"#);
        let form = || Fields::from_form((0..count).map(|number| (number.to_string(), "1".to_owned())));
        for work in [
            comparisons::during(|| parse_contact_message(Fields::parse_body(body.as_bytes()).unwrap()).unwrap_err()),
            comparisons::during(|| parse_download_order(form(), Via::Site).unwrap_err()),
        ] {
            // One pass for each of the few fields that an endpoint has.
            assert!(work <= 4 * (count + 2), "{work} comparisons");
        }
    }
}
