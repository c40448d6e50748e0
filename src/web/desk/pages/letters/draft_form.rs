//! What the page of a draft sends: its fields, and images.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest as _, Multipart, Request};
use http::request::Parts;
use tokio::time::timeout;

use crate::domain::letters::{DraftFields, ImageName, LetterImage};
use crate::domain::limits::{MAX_LETTER_BYTES, MAX_LETTER_WITH_IMAGES_BYTES};
use crate::domain::time::Timestamp;
use crate::web::desk::pages::failure::DeskFailure;

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
}

impl DraftForm {
    pub(super) async fn read(head: &Parts, body: Body) -> Result<Self, DeskFailure> {
        let invalid = |text: &str| DeskFailure::Invalid(text.to_owned());
        let request = Request::from_parts(head.clone(), body);
        let multipart = Multipart::from_request(request, &()).await.map_err(|_| invalid("The form cannot be read."))?;
        timeout(TIMEOUT, Self::collect(multipart))
            .await
            .unwrap_or_else(|_| Err(invalid("The form took too long to arrive.")))
    }

    async fn collect(mut multipart: Multipart) -> Result<Self, DeskFailure> {
        let invalid = |text: String| DeskFailure::Invalid(text);
        let incomplete = |_| DeskFailure::Invalid("The form did not arrive to its end.".to_owned());
        let (mut form, mut bytes) = (Self::default(), 0);
        while let Some(mut field) = multipart.next_field().await.map_err(incomplete)? {
            let (name, file) = (field.name().unwrap_or_default().to_owned(), field.file_name().map(str::to_owned));
            let mut content = Vec::new();
            while let Some(chunk) = field.chunk().await.map_err(incomplete)? {
                bytes += chunk.len();
                if bytes > MAX_LETTER_WITH_IMAGES_BYTES + MAX_LETTER_BYTES {
                    return Err(invalid("A letter and its images have at most 1 MiB together.".to_owned()));
                }
                content.extend_from_slice(&chunk);
            }
            match file.filter(|file| !file.is_empty()) {
                Some(file) => {
                    let image = LetterImage::parse(ImageName::of_upload(&file), content);
                    form.images.push(image.map_err(|why| invalid(format!("The image {file} {why}.")))?);
                }
                // A browser sends an empty file where none was chosen.
                None if name == "image" => {}
                None => form.set(&name, &content)?,
            }
        }
        Ok(form)
    }

    fn set(&mut self, name: &str, content: &[u8]) -> Result<(), DeskFailure> {
        let text = str::from_utf8(content).map_err(|_| DeskFailure::Invalid("The text is not UTF-8.".to_owned()))?;
        // Browsers submit line breaks as CRLF.
        let text = text.replace("\r\n", "\n");
        match name {
            "subject" => self.fields.subject = text,
            "preview" => self.fields.preview = text,
            "body" => self.fields.body = text,
            "then" => self.then = text,
            "saved" => self.saved = text.parse().ok().map(Timestamp::from_unix_millis),
            _ => {}
        }
        Ok(())
    }
}
