//! The Markdown and the images of letters, with which any instance can go on with one.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::domain::letters::{ImageName, Letter, LetterImage};
use crate::domain::sha256::Sha256;
use crate::store::connection::{Store, StoreFailure, values};

const INSERT_LETTER: &str = "INSERT INTO letters (id, subject, markdown) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";

const INSERT_IMAGE: &str = "INSERT INTO letter_images (letter, name, content) VALUES ($1, $2, $3) \
     ON CONFLICT DO NOTHING";

const SELECT_LETTER: &str = "SELECT subject, markdown FROM letters WHERE id = $1";

const SELECT_IMAGES: &str = "SELECT name, content FROM letter_images WHERE letter = $1 ORDER BY name";

impl Store {
    /// Records a letter that is about to start, unless it was before.
    pub async fn prepare_letter(&self, letter: &Letter) -> Result<(), StoreFailure> {
        let (id, mut tx) = (letter.id.hex(), self.begin().await?);
        tx.run(INSERT_LETTER, values![&id, &letter.subject, &letter.markdown]).await?;
        for image in &letter.images {
            let content = STANDARD.encode(&image.bytes);
            let values = values![&id, image.name.as_str(), content];
            tx.run(INSERT_IMAGE, values).await?;
        }
        tx.commit().await
    }

    /// Returns a letter as it was recorded, whether or not it has been started.
    pub async fn stored_letter(&self, id: &Sha256) -> Result<Option<Letter>, StoreFailure> {
        let letter = self.run(SELECT_LETTER, values![id.hex()]).await?;
        let Some((subject, markdown)) = letter.first::<(String, String)>()? else { return Ok(None) };
        let images: Vec<(String, String)> = self.run(SELECT_IMAGES, values![id.hex()]).await?.all()?;
        let images = images.into_iter().filter_map(|(name, content)| {
            let image = LetterImage::parse(ImageName::from_stored(name), STANDARD.decode(content).ok()?);
            image.ok().map(Arc::new)
        });
        Ok(Some(Letter::from_stored(*id, subject, &markdown, images.collect())))
    }
}
