//! What an instance noticed while it ran.

use super::statement::on_pool;
use super::{Store, StoreFailure};
use crate::domain::time::Timestamp;

impl Store {
    /// Records when something was noticed last.
    pub async fn record_notice(&self, name: &'static str, at: Timestamp) -> Result<(), StoreFailure> {
        const UPSERT: &str =
            "INSERT INTO notices (name, at) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET at = excluded.at";
        on_pool!(self, |pool| sqlx::query(UPSERT).bind(name).bind(at.unix_millis()).execute(pool).await.map(drop))?;
        Ok(())
    }

    /// Returns when something was noticed last.
    pub async fn notice(&self, name: &'static str) -> Result<Option<Timestamp>, StoreFailure> {
        const SELECT: &str = "SELECT at FROM notices WHERE name = $1";
        let at: Option<i64> = on_pool!(self, |pool| sqlx::query_scalar(SELECT).bind(name).fetch_optional(pool).await?);
        Ok(at.map(Timestamp::from_unix_millis))
    }
}
