//! Errors in the files of a site.

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SiteFailure {
    #[error("The setting `site_dir` cannot be used: {0} is not a folder that can be read.")]
    NoFolder(String),
    #[error("The site has no file {0}.")]
    Missing(String),
    #[error("The site's file {file} has a fault in line {line}: {why}.")]
    Fault { file: String, line: usize, why: String },
}

impl SiteFailure {
    pub(super) fn fault(file: &str, line: usize, why: impl Into<String>) -> Self {
        Self::Fault { file: file.to_owned(), line, why: why.into() }
    }

    /// Names the innermost template that failed, and the line in it.
    pub(super) fn template(file: &str, error: &minijinja::Error) -> Self {
        let innermost = std::iter::successors(Some(error), |error| {
            std::error::Error::source(*error).and_then(|source| source.downcast_ref::<minijinja::Error>())
        })
        .filter(|error| error.name().is_some())
        .last()
        .unwrap_or(error);
        let why = innermost
            .detail()
            .map_or_else(|| innermost.kind().to_string(), |detail| format!("{}: {detail}", innermost.kind()));
        Self::fault(innermost.name().unwrap_or(file), innermost.line().unwrap_or(1), why)
    }
}
