//! What an instance noticed while it ran.

use super::statement::values;
use super::{Store, StoreFailure};
use crate::domain::time::Timestamp;

impl Store {
    /// Records when something was noticed last.
    pub async fn record_notice(&self, name: &'static str, at: Timestamp) -> Result<(), StoreFailure> {
        self.run("INSERT INTO notices (name, at) VALUES ($1, $2)", values![name, at]).await.map(drop)
    }

    /// Returns when something was noticed last.
    pub async fn notice(&self, name: &'static str) -> Result<Option<Timestamp>, StoreFailure> {
        Ok(self.run("SELECT at FROM notices WHERE name = $1", values![name]).await?.column()?.pop())
    }
}
