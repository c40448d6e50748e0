//! JSON schemas of objects. The OpenAPI document, the MCP tools and the reference page are generated
//! from them; the parsers of requests take only the names of fields from them.

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::domain::limits;
use crate::domain::mail::email;
use crate::domain::text::TWO_VISIBLE_CHARACTERS;

/// The schema of a JSON object. `Serialize` produces the form that the reference page uses.
#[derive(Debug, Serialize)]
pub(crate) struct Shape {
    pub name: &'static str,
    #[serde(skip)]
    pub description: &'static str,
    pub fields: &'static [Field],
}

#[derive(Debug)]
pub(crate) struct Field {
    pub name: &'static str,
    pub kind: FieldType,
    pub required: bool,
    pub description: &'static str,
}

#[derive(Debug)]
pub(crate) enum FieldType {
    Email,
    /// At most this many code points.
    BoundedString(usize),
    ContactMessage,
    BoolDefaultFalse,
    Bool,
    AlwaysTrue,
    String,
    Uri,
    Integer,
    OneOf(fn() -> Vec<&'static str>),
    StringArray,
    ObjectArray(&'static Shape),
}

impl Shape {
    pub(crate) fn schema(&self) -> Value {
        let mut schema = json!({ "type": "object", "description": self.description });
        add_fields(&mut schema, self.fields);
        schema
    }
}

/// The schema of an object that has no other fields, without a description.
pub(crate) fn closed_schema(fields: &[Field]) -> Value {
    let mut schema = json!({ "type": "object" });
    add_fields(&mut schema, fields);
    schema["additionalProperties"] = false.into();
    schema
}

fn add_fields(schema: &mut Value, fields: &[Field]) {
    schema["properties"] = fields.iter().map(|field| (field.name.to_owned(), field.schema())).collect();
    let required: Vec<_> = fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    if !required.is_empty() {
        schema["required"] = required.into();
    }
}

impl Field {
    pub(crate) const fn required(name: &'static str, kind: FieldType, description: &'static str) -> Self {
        Self { name, kind, required: true, description }
    }

    pub(crate) const fn optional(name: &'static str, kind: FieldType, description: &'static str) -> Self {
        Self { name, kind, required: false, description }
    }

    fn schema(&self) -> Value {
        let mut schema = self.kind.schema();
        if !self.description.is_empty() {
            schema["description"] = self.description.into();
        }
        schema
    }
}

impl Serialize for Field {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let listing = json!({
            "name": self.name,
            "type": self.kind.type_name(),
            "required": self.required,
            "constraints": self.kind.constraints(),
            "about": self.description,
        });
        listing.serialize(serializer)
    }
}

impl FieldType {
    fn schema(&self) -> Value {
        match self {
            Self::Email => json!({
                "type": "string", "format": "email", "maxLength": limits::MAX_EMAIL_CHARS, "pattern": email::PATTERN,
            }),
            Self::BoundedString(max) => json!({ "type": "string", "maxLength": max }),
            Self::ContactMessage => json!({
                "type": "string", "minLength": limits::MIN_MESSAGE_CHARS, "maxLength": limits::MAX_MESSAGE_CHARS, "pattern": "\\S",
                "allOf": [{ "pattern": TWO_VISIBLE_CHARACTERS }],
            }),
            Self::BoolDefaultFalse => json!({ "type": "boolean", "default": false }),
            Self::Bool => json!({ "type": "boolean" }),
            Self::AlwaysTrue => json!({ "type": "boolean", "const": true }),
            Self::String => json!({ "type": "string" }),
            Self::Uri => json!({ "type": "string", "format": "uri" }),
            Self::Integer => json!({ "type": "integer" }),
            Self::OneOf(values) => json!({ "type": "string", "enum": values() }),
            Self::StringArray => json!({ "type": "array", "items": { "type": "string" } }),
            Self::ObjectArray(shape) => json!({ "type": "array", "items": shape.schema() }),
        }
    }

    const fn type_name(&self) -> &'static str {
        match self {
            Self::Email => "string, an email address",
            Self::Uri => "string, an address",
            Self::BoundedString(_) | Self::ContactMessage | Self::String | Self::OneOf(_) => "string",
            Self::BoolDefaultFalse | Self::Bool | Self::AlwaysTrue => "boolean",
            Self::Integer => "integer",
            Self::StringArray | Self::ObjectArray(_) => "array",
        }
    }

    fn constraints(&self) -> String {
        match self {
            Self::Email => format!("at most {} characters", limits::MAX_EMAIL_CHARS),
            Self::BoundedString(max) => format!("at most {max} characters"),
            Self::ContactMessage => {
                format!("{} to {} characters", limits::MIN_MESSAGE_CHARS, limits::MAX_MESSAGE_CHARS)
            }
            Self::BoolDefaultFalse => "`false` if omitted".to_owned(),
            Self::AlwaysTrue => "always `true`".to_owned(),
            Self::OneOf(values) => {
                format!("one of {}", values().iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", "))
            }
            Self::Bool | Self::String | Self::Uri | Self::Integer | Self::StringArray | Self::ObjectArray(_) => {
                String::new()
            }
        }
    }
}
