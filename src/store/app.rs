//! The name of the app that the database belongs to.

use super::connection::{Store, StoreFailure, values};

const SELECT: &str = "SELECT name FROM app";

const INSERT: &str = "INSERT INTO app (id, name) VALUES (1, $1) ON CONFLICT (id) DO NOTHING";

const REPLACE: &str = "INSERT INTO app (id, name) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET name = excluded.name";

impl Store {
    /// Returns `None` as long as the database belongs to no app.
    pub async fn app_name(&self) -> Result<Option<String>, StoreFailure> {
        Ok(self.run(SELECT, values![]).await?.column()?.pop())
    }

    /// Records the name, unless there is one.
    pub async fn record_app_name(&self, name: &str) -> Result<(), StoreFailure> {
        self.run(INSERT, values![name]).await.map(drop)
    }

    pub async fn rename_app(&self, name: &str) -> Result<(), StoreFailure> {
        self.run(REPLACE, values![name]).await.map(drop)
    }
}
