//! Drafts of letters, and their images.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use uuid::Uuid;

use crate::domain::letters::{Draft, ImageName, LetterImage};
use crate::domain::time::Timestamp;
use crate::store::connection::{Store, StoreFailure, from_row_struct, parse_id, values};

const INSERT: &str = "INSERT INTO drafts (id, markdown, saved_at) VALUES ($1, $2, $3)";

const SAVE: &str = "UPDATE drafts SET markdown = $2, saved_at = $3 WHERE id = $1 AND saved_at = $4";

const SELECT: &str = "SELECT id, markdown, saved_at FROM drafts WHERE id = $1";

const SELECT_ALL: &str = "SELECT id, markdown, saved_at FROM drafts ORDER BY saved_at DESC, id";

const SELECT_IMAGES: &str = "SELECT name, content FROM draft_images WHERE draft = $1 ORDER BY name";

const SET_IMAGE: &str = "INSERT INTO draft_images (draft, name, content) SELECT id, $2, $3 FROM drafts WHERE id = $1 \
     ON CONFLICT (draft, name) DO UPDATE SET content = excluded.content";

from_row_struct! {
    struct DraftRow {
        id: String,
        markdown: String,
        saved_at: Timestamp,
    }
}

impl Store {
    pub async fn add_draft(&self, id: Uuid, markdown: &str, at: Timestamp) -> Result<(), StoreFailure> {
        self.run(INSERT, values![id, markdown, at]).await.map(drop)
    }

    /// Saves a draft that was saved at `before` last. Returns `false` if it is gone, or somebody else has saved it meanwhile.
    pub async fn save_draft(
        &self,
        id: Uuid,
        markdown: &str,
        before: Timestamp,
        at: Timestamp,
    ) -> Result<bool, StoreFailure> {
        Ok(self.run(SAVE, values![id, markdown, at, before]).await?.affected > 0)
    }

    /// Returns a draft with its images.
    pub async fn draft(&self, id: Uuid) -> Result<Option<Draft>, StoreFailure> {
        let Some(row) = self.run(SELECT, values![id]).await?.first::<DraftRow>()? else { return Ok(None) };
        let images: Vec<(String, String)> = self.run(SELECT_IMAGES, values![id]).await?.all()?;
        let images = images.into_iter().filter_map(|(name, content)| {
            let image = LetterImage::parse(ImageName::from_stored(name), STANDARD.decode(content).ok()?);
            image.ok().map(Arc::new)
        });
        Ok(Some(row.parse(images.collect())?))
    }

    /// Returns all drafts without their images, the last one saved first.
    pub async fn drafts(&self) -> Result<Vec<Draft>, StoreFailure> {
        let rows: Vec<DraftRow> = self.run(SELECT_ALL, &[]).await?.all()?;
        rows.into_iter().map(|row| row.parse(Vec::new())).collect()
    }

    /// Adds an image, or replaces the one of this name.
    pub async fn set_draft_image(&self, draft: Uuid, image: &LetterImage) -> Result<(), StoreFailure> {
        let content = STANDARD.encode(&image.bytes);
        self.run(SET_IMAGE, values![draft, image.name.as_str(), content]).await.map(drop)
    }

    pub async fn delete_draft_image(&self, draft: Uuid, name: &str) -> Result<(), StoreFailure> {
        self.run("DELETE FROM draft_images WHERE draft = $1 AND name = $2", values![draft, name]).await.map(drop)
    }

    /// Deletes a draft with its images. Returns whether there was one.
    pub async fn delete_draft(&self, id: Uuid) -> Result<bool, StoreFailure> {
        Ok(self.run("DELETE FROM drafts WHERE id = $1", values![id]).await?.affected > 0)
    }
}

impl DraftRow {
    fn parse(self, images: Vec<Arc<LetterImage>>) -> Result<Draft, StoreFailure> {
        Ok(Draft { id: parse_id(&self.id)?, markdown: self.markdown, saved: self.saved_at, images })
    }
}
