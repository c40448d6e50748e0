//! What somebody typed into a form that came back, and what was wrong with it.

use serde::Serialize;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Form {
    pub values: FormValues,
    pub errors: FormErrors,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct FormValues {
    pub email: String,
    pub updates: bool,
    pub name: String,
    pub message: String,
}

/// A sentence each, or nothing.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FormErrors {
    pub email: String,
    pub name: String,
    pub message: String,
    /// What no single field is to blame for.
    pub form: String,
}
