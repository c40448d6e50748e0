//! Descriptions of JSON objects, each written once: requests are parsed by them, and the OpenAPI
//! document, the MCP tools and the reference page are generated from them.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::domain::{email, limits};

/// A JSON object with a name. Serialized as the reference page lists it.
#[derive(Debug, Serialize)]
pub(crate) struct Shape {
    pub name: &'static str,
    #[serde(skip)]
    pub about: &'static str,
    pub fields: &'static [Field],
    /// Whether unknown members are refused.
    #[serde(skip)]
    pub closed: bool,
}

#[derive(Debug)]
pub(crate) struct Field {
    pub name: &'static str,
    pub kind: Kind,
    pub required: bool,
    pub about: &'static str,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Email,
    /// A string of at most this many code points.
    Text(usize),
    /// The text of a contact message.
    Message,
    /// `false` by default.
    Flag,
    Boolean,
    /// Always `true`.
    True,
    PlainText,
    Uri,
    Integer,
    OneOf(fn() -> Vec<&'static str>),
    /// An array of strings.
    Texts,
    /// An array of objects of one shape.
    ListOf(&'static Shape),
}

impl Shape {
    pub(crate) fn schema(&self) -> Value {
        let properties: Map<_, _> = self.fields.iter().map(|field| (field.name.to_owned(), field.schema())).collect();
        let required: Vec<_> = self.fields.iter().filter(|field| field.required).map(|field| field.name).collect();
        let mut schema = json!({ "type": "object" });
        if !self.about.is_empty() {
            schema["description"] = self.about.into();
        }
        schema["properties"] = properties.into();
        if !required.is_empty() {
            schema["required"] = required.into();
        }
        if self.closed {
            schema["additionalProperties"] = false.into();
        }
        schema
    }

    /// The schema with unknown members refused, for MCP tools.
    pub(crate) fn closed_schema(&self) -> Value {
        let mut schema = self.schema();
        schema["additionalProperties"] = false.into();
        schema
    }
}

impl Field {
    pub(crate) const fn required(name: &'static str, kind: Kind, about: &'static str) -> Self {
        Self { name, kind, required: true, about }
    }

    pub(crate) const fn optional(name: &'static str, kind: Kind, about: &'static str) -> Self {
        Self { name, kind, required: false, about }
    }

    fn schema(&self) -> Value {
        let mut schema = self.kind.schema();
        schema["description"] = self.about.into();
        schema
    }
}

impl Serialize for Field {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut listing = serializer.serialize_struct("Field", 5)?;
        listing.serialize_field("name", self.name)?;
        listing.serialize_field("type", self.kind.type_name())?;
        listing.serialize_field("required", &self.required)?;
        listing.serialize_field("constraints", &self.kind.constraints())?;
        listing.serialize_field("about", self.about)?;
        listing.end()
    }
}

impl Kind {
    fn schema(&self) -> Value {
        match self {
            Self::Email => json!({
                "type": "string", "format": "email", "maxLength": limits::MAX_EMAIL_CHARS, "pattern": email::PATTERN,
            }),
            Self::Text(max) => json!({ "type": "string", "maxLength": max }),
            Self::Message => json!({
                "type": "string", "minLength": limits::MIN_MESSAGE_CHARS, "maxLength": limits::MAX_MESSAGE_CHARS, "pattern": "\\S",
            }),
            Self::Flag => json!({ "type": "boolean", "default": false }),
            Self::Boolean => json!({ "type": "boolean" }),
            Self::True => json!({ "type": "boolean", "const": true }),
            Self::PlainText => json!({ "type": "string" }),
            Self::Uri => json!({ "type": "string", "format": "uri" }),
            Self::Integer => json!({ "type": "integer" }),
            Self::OneOf(values) => json!({ "type": "string", "enum": values() }),
            Self::Texts => json!({ "type": "array", "items": { "type": "string" } }),
            Self::ListOf(shape) => json!({ "type": "array", "items": shape.schema() }),
        }
    }

    const fn type_name(&self) -> &'static str {
        match self {
            Self::Email => "string, an email address",
            Self::Uri => "string, an address",
            Self::Text(_) | Self::Message | Self::PlainText | Self::OneOf(_) => "string",
            Self::Flag | Self::Boolean | Self::True => "boolean",
            Self::Integer => "integer",
            Self::Texts | Self::ListOf(_) => "array",
        }
    }

    fn constraints(&self) -> String {
        match self {
            Self::Email => format!("at most {} characters", limits::MAX_EMAIL_CHARS),
            Self::Text(max) => format!("at most {max} characters"),
            Self::Message => format!("{} to {} characters", limits::MIN_MESSAGE_CHARS, limits::MAX_MESSAGE_CHARS),
            Self::Flag => "`false` if left out".to_owned(),
            Self::True => "always `true`".to_owned(),
            Self::OneOf(values) => {
                format!("one of {}", values().iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", "))
            }
            Self::Boolean | Self::PlainText | Self::Uri | Self::Integer | Self::Texts | Self::ListOf(_) => {
                String::new()
            }
        }
    }
}
