//! The members of a request, read one by one into checked values, in the order of checks that the
//! interface promises: members and types first, then the address, then the message.

use serde_json::value::RawValue;

use super::json::{self, Members, NotAnObject};
use super::problem::{ErrorCode, Fault, Problem};
use super::shape::Field;
use crate::domain::email::EmailAddress;
use crate::domain::limits;
use crate::domain::text::{InvalidMessage, MessageText, TooLong};

/// A value as it was given.
#[derive(Debug)]
enum RawField {
    Text(String),
    Flag(bool),
    /// A field of a form: a text, or a box that is ticked.
    Typed(String),
    Other,
}

/// What has not been read yet of a request, and what was found wrong so far.
#[derive(Debug)]
pub(crate) struct Fields {
    given: Vec<(String, RawField)>,
    faults: Vec<Fault>,
}

/// The address of a request, not yet judged: that comes after everything else has been.
#[derive(Debug)]
pub(crate) struct UnjudgedEmail(Option<RawField>);

impl Fields {
    pub(crate) fn of_body(body: &[u8]) -> Result<Self, Problem> {
        Members::parse(body).map(|members| Self::of_members(&members)).map_err(not_an_object)
    }

    pub(crate) const fn none() -> Self {
        Self { given: Vec::new(), faults: Vec::new() }
    }

    pub(crate) fn of_members(members: &Members<'_>) -> Self {
        let given = members.0.iter().map(|(name, value)| (name.clone(), RawField::from(*value))).collect();
        Self { given, faults: Vec::new() }
    }

    pub(crate) fn of_form(pairs: impl Iterator<Item = (String, String)>) -> Self {
        Self { given: pairs.map(|(name, value)| (name, RawField::Typed(value))).collect(), faults: Vec::new() }
    }

    pub(crate) fn email(&mut self, field: &Field) -> UnjudgedEmail {
        UnjudgedEmail(self.take(field))
    }

    /// A text that a parser accepts.
    pub(crate) fn text<T>(&mut self, field: &Field, parse: impl FnOnce(&str) -> Result<T, TooLong>) -> Option<T> {
        let text = self.string(field)?;
        parse(&text).map_err(|why| self.fault(field, format!("{} is too long: {why}.", spoken(field)))).ok()
    }

    pub(crate) fn string(&mut self, field: &Field) -> Option<String> {
        if let RawField::Text(text) | RawField::Typed(text) = self.take(field)? {
            return Some(text);
        }
        self.fault(field, format!("{} has to be a string.", spoken(field)));
        None
    }

    pub(crate) fn flag(&mut self, field: &Field) -> bool {
        match self.take(field) {
            None => false,
            Some(RawField::Flag(flag)) => flag,
            Some(RawField::Typed(text)) if text == "on" => true,
            Some(_) => {
                self.fault(field, format!("{} has to be true or false.", spoken(field)));
                false
            }
        }
    }

    /// Ends the first round: everything has been asked for, so what is left is unknown.
    pub(crate) fn finish(mut self) -> Result<(), Problem> {
        if !self.given.is_empty() {
            let detail = "There is a member that this request does not have.".to_owned();
            self.faults.push(Fault { pointer: "#".into(), detail });
        }
        if self.faults.is_empty() {
            return Ok(());
        }
        let detail = self.faults.iter().map(|fault| fault.detail.as_str()).collect::<Vec<_>>().join(" ");
        Err(Problem { faults: self.faults, ..Problem::new(ErrorCode::InvalidBody, detail) })
    }

    /// The value of a field, or a fault if it is there more than once.
    fn take(&mut self, field: &Field) -> Option<RawField> {
        let (mine, rest) = std::mem::take(&mut self.given).into_iter().partition(|(name, _)| name == field.name);
        self.given = rest;
        let mut mine: Vec<(String, RawField)> = mine;
        let value = mine.pop().map(|(_, value)| value);
        if !mine.is_empty() {
            self.fault(field, format!("{} is there more than once.", spoken(field)));
        }
        value
    }

    fn fault(&mut self, field: &Field, detail: String) {
        self.faults.push(Fault { pointer: format!("#/{}", field.name).into(), detail });
    }
}

impl UnjudgedEmail {
    pub(crate) fn judge(self) -> Result<EmailAddress, Problem> {
        let refuse = |detail: String| Problem::with_member(ErrorCode::InvalidEmail, "email", detail);
        match self.0 {
            None => Err(refuse("The email address is missing.".to_owned())),
            Some(RawField::Text(text) | RawField::Typed(text)) => {
                EmailAddress::parse(&text).map_err(|why| refuse(format!("The email address is not valid: {why}.")))
            }
            Some(_) => Err(refuse("The email address has to be a string.".to_owned())),
        }
    }
}

/// What a field is called in a sentence that people may read beside it.
fn spoken(field: &Field) -> String {
    match field.name {
        "email" => "The email address".to_owned(),
        "name" => "The name".to_owned(),
        "message" => "The message".to_owned(),
        other => format!("`{other}`"),
    }
}

/// A message that was asked for; one that is not there is as good as an empty one.
pub(crate) fn judge_message(message: Option<&str>) -> Result<MessageText, Problem> {
    MessageText::parse(message.unwrap_or_default()).map_err(|why| {
        let code = match why {
            InvalidMessage::Empty => ErrorCode::EmptyMessage,
            InvalidMessage::TooLong(_) => ErrorCode::MessageTooLong,
        };
        Problem::with_member(code, "message", why.to_string())
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
        NotAnObject::LoneSurrogate => "The body has a string with half of a surrogate pair.",
        NotAnObject::Array => "The body is a JSON array, not an object.",
        NotAnObject::OtherValue => "The body is a JSON value, but not an object.",
    };
    Problem::new(ErrorCode::InvalidJson, detail)
}
