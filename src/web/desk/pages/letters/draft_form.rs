//! What the page of a draft sends: its fields, and images.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::body::Body;
use futures_util::TryStreamExt as _;
use http::HeaderMap;
use tokio::time::timeout;

use crate::domain::letters::{DraftFields, ImageName, LetterImage};
use crate::domain::limits::{MAX_FORM_BYTES, MAX_LETTER_WITH_IMAGES_BYTES};
use crate::domain::text::{clean_text, sanitize_line};
use crate::domain::time::Timestamp;
use crate::web::desk::pages::failure::DeskFailure;
use crate::web::desk::pages::form::{incomplete, parts};

/// For all of it. A megabyte at 10 KiB a second.
const TIMEOUT: Duration = Duration::from_mins(2);

#[derive(Debug, Default)]
pub(super) struct DraftForm {
    pub fields: DraftFields,
    /// When the draft was saved that the page shows.
    pub saved: Option<Timestamp>,
    /// What the maker wants to do after saving.
    pub then: String,
    pub images: Vec<LetterImage>,
    /// Why one of them cannot be used.
    pub refused_image: Option<String>,
}

impl DraftForm {
    pub(super) async fn read(headers: &HeaderMap, body: Body) -> Result<Self, DeskFailure> {
        timeout(TIMEOUT, Self::collect(headers, body)).await.unwrap_or_else(|_| Err(incomplete()))
    }

    async fn collect(headers: &HeaderMap, body: Body) -> Result<Self, DeskFailure> {
        let allowed = MAX_LETTER_WITH_IMAGES_BYTES as u64 + MAX_FORM_BYTES;
        let chunks = body.into_data_stream().map_err(io::Error::other);
        let mut parts = parts(headers, chunks, Arc::new(AtomicU64::new(allowed)))?;
        let (mut form, mut has_text) = (Self::default(), false);
        while let Some(part) = parts.next_field().await.map_err(|_| incomplete())? {
            let (name, file) = (part.name().unwrap_or_default().to_owned(), part.file_name().map(str::to_owned));
            has_text |= name == "body";
            let content = part.bytes().await.map_err(|_| incomplete())?;
            match file {
                // A browser sends a file without a name if none was chosen.
                Some(file) if file.is_empty() => {}
                Some(file) => match LetterImage::parse(ImageName::of_upload(&file), content.to_vec()) {
                    Ok(image) => form.images.push(image),
                    Err(why) => form.refused_image = Some(format!("{} {why}.", sanitize_line(&file))),
                },
                None => form.set(&name, clean_text(&String::from_utf8_lossy(&content))),
            }
        }
        if has_text { Ok(form) } else { Err(incomplete()) }
    }

    fn set(&mut self, name: &str, text: String) {
        match name {
            "subject" => self.fields.subject = text,
            "preview" => self.fields.preview = text,
            "body" => self.fields.body = text,
            "then" => self.then = text,
            "saved" => self.saved = text.parse().ok().map(Timestamp::from_unix_millis),
            _ => {}
        }
    }
}
