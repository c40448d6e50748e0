//! The table of tokens, which has their hashes.

use super::connection::{Store, StoreFailure, from_row_struct, values};
use crate::domain::sha256::Sha256;
use crate::domain::time::{Day, Timestamp};
use crate::domain::tokens::{CredentialName, Token, TokenRight};

const INSERT: &str = "INSERT INTO tokens (name, hash, may, created_at, last_day) VALUES ($1, $2, $3, $4, $5) \
     ON CONFLICT (name) DO NOTHING";

const SELECT: &str = "SELECT name, may, created_at, last_day, used_at FROM tokens ORDER BY name";

const SELECT_BY_HASH: &str = "SELECT name, may, created_at, last_day, used_at FROM tokens WHERE hash = $1 AND may = $2";

const RECORD_USE: &str = "UPDATE tokens SET used_at = $2 WHERE name = $1";

const DELETE: &str = "DELETE FROM tokens WHERE name = $1";

from_row_struct! {
    struct TokenRow {
        name: String,
        may: String,
        created_at: Timestamp,
        last_day: Option<i64>,
        used_at: Option<Timestamp>,
    }
}

impl Store {
    /// Returns `false` if there is a token of this name.
    pub async fn add_token(&self, token: &Token, hash: &Sha256) -> Result<bool, StoreFailure> {
        let until = token.until.map(Day::number);
        let values = values![token.name.as_str(), hash.hex(), token.may.as_str(), token.created, until];
        Ok(self.run(INSERT, values).await?.affected > 0)
    }

    /// Returns all tokens by their names.
    pub async fn tokens(&self) -> Result<Vec<Token>, StoreFailure> {
        self.run(SELECT, values![]).await?.all()?.into_iter().map(TokenRow::parse).collect()
    }

    pub async fn find_token(&self, hash: &Sha256, may: TokenRight) -> Result<Option<Token>, StoreFailure> {
        let row = self.run(SELECT_BY_HASH, values![hash.hex(), may.as_str()]).await?.first()?;
        row.map(TokenRow::parse).transpose()
    }

    pub async fn record_token_use(&self, name: &CredentialName, at: Timestamp) -> Result<(), StoreFailure> {
        self.run(RECORD_USE, values![name.as_str(), at]).await.map(drop)
    }

    /// Returns `false` if there is no such token.
    pub async fn delete_token(&self, name: &CredentialName) -> Result<bool, StoreFailure> {
        Ok(self.run(DELETE, values![name.as_str()]).await?.affected > 0)
    }
}

impl TokenRow {
    fn parse(self) -> Result<Token, StoreFailure> {
        Ok(Token {
            name: CredentialName::from_stored(self.name),
            may: TokenRight::parse(&self.may).ok_or_else(|| StoreFailure::invalid("what a token may do"))?,
            created: self.created_at,
            until: self.last_day.map(Day::from_number),
            last_used: self.used_at,
        })
    }
}
