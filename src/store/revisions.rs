//! Numbers that grow with each change of what every instance keeps in memory, so that they read it again.

use super::connection::{Store, StoreFailure, Transaction, values};
use crate::domain::parse::word_enum;

word_enum! {
    /// What is kept in memory.
    pub enum Revision {
        Releases = "releases",
        /// Those in the archive.
        Letters = "letters",
        /// The files of the site, when makers have them read again.
        Site = "site",
    }
}

const SELECT: &str = "SELECT number FROM revisions WHERE name = $1";

const NEXT: &str = "INSERT INTO revisions (name, number) VALUES ($1, 1) \
     ON CONFLICT (name) DO UPDATE SET number = revisions.number + 1";

impl Store {
    /// Returns a number that differs whenever `of` does.
    pub async fn revision(&self, of: Revision) -> Result<i64, StoreFailure> {
        Ok(self.run(SELECT, values![of.as_str()]).await?.column()?.pop().unwrap_or_default())
    }

    /// Has all instances read the files of the site again.
    pub async fn request_reading_site(&self) -> Result<(), StoreFailure> {
        let mut tx = self.begin().await?;
        tx.change_revision(Revision::Site).await?;
        tx.commit().await
    }
}

impl Transaction {
    /// Tells all instances of the change in this transaction.
    pub(in crate::store) async fn change_revision(&mut self, of: Revision) -> Result<(), StoreFailure> {
        self.run(NEXT, values![of.as_str()]).await.map(drop)
    }
}
