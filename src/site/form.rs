//! The values and errors of a form that is shown again after it was refused.

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

/// One sentence each, or empty.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FormErrors {
    pub email: String,
    pub name: String,
    pub message: String,
    /// An error that concerns no single field.
    pub form: String,
}
