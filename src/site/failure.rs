//! What can be wrong with the files of a site.

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SiteFailure {
    #[error("The site has no file {0}.")]
    Missing(String),
    #[error("The site's file {file} has a fault in line {line}: {why}.")]
    Fault { file: String, line: usize, why: String },
}

impl SiteFailure {
    pub(super) fn fault(file: &str, line: usize, why: impl Into<String>) -> Self {
        Self::Fault { file: file.to_owned(), line, why: why.into() }
    }

    pub(super) fn template(file: &str, error: &minijinja::Error) -> Self {
        let why =
            error.detail().map_or_else(|| error.kind().to_string(), |detail| format!("{}: {detail}", error.kind()));
        Self::fault(error.name().unwrap_or(file), error.line().unwrap_or(1), why)
    }
}
