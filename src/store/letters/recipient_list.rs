//! Lists the recipients of a letter, in pages and in the order of addresses: each is passed once, whatever is listed.

use crate::domain::letters::{LetterReference, RecipientFilter};
use crate::domain::time::Timestamp;
use crate::store::connection::{Statement, Store, StoreFailure, count, from_row_struct, values};

from_row_struct! {
    /// One recipient of a letter: `email` as first typed, and the status code with which the copy came back.
    #[derive(Clone, Debug)]
    pub struct ListedRecipient {
        pub email: String,
        pub address: String,
        pub state: String,
        pub at: Timestamp,
        pub trouble: Option<String>,
        pub bounce: Option<String>,
        pub bounced_at: Option<Timestamp>,
    }
}

/// PostgreSQL would otherwise read all people before each page.
macro_rules! select_page {
    ($condition:literal) => {
        concat!(
            "SELECT p.email, r.address, r.state, r.at, r.last_error AS trouble, r.bounce, r.bounced_at \
             FROM letter_recipients r JOIN people p ON p.address = r.address \
             WHERE r.letter = $1 AND r.address > $2 AND p.address > $2 ",
            $condition,
            "ORDER BY r.address LIMIT $3"
        )
    };
}

const SELECT_ALL: Statement = Statement { sqlite: select_page!(""), postgres: select_page!("") };

/// SQLite would otherwise sort all in the state for each page.
const SELECT_IN_STATE: Statement =
    Statement { sqlite: select_page!("AND +r.state = $4 "), postgres: select_page!("AND r.state = $4 ") };

/// Those that the letter counts as bounced.
const SELECT_BOUNCED: Statement = Statement {
    sqlite: select_page!("AND r.bounce IS NOT NULL AND +r.state IN ('sent', 'uncertain') "),
    postgres: select_page!("AND r.bounce IS NOT NULL AND r.state IN ('sent', 'uncertain') "),
};

/// No digit is like the letter g, and all sort before it.
const SELECT_LETTERS: &str =
    "SELECT id FROM letters WHERE started_at IS NOT NULL AND id >= $1 AND id < $2 ORDER BY id LIMIT 2";

const COUNT_SKIPPED: &str = "SELECT COALESCE(last_error, ''), COUNT(*) FROM letter_recipients \
     WHERE letter = $1 AND state = 'skipped' GROUP BY last_error ORDER BY 2 DESC, 1";

impl Store {
    /// Returns the ids of the letters that have been started and are meant, two at most.
    pub async fn letters_by_reference(&self, reference: &LetterReference) -> Result<Vec<String>, StoreFailure> {
        let (from, to) = (reference.as_str(), format!("{}g", reference.as_str()));
        self.run(SELECT_LETTERS, values![from, to]).await?.column()
    }

    /// Returns up to `limit` recipients that follow a normalized address, the first ones after `""`.
    pub async fn listed_recipients(
        &self,
        letter: &str,
        filter: Option<RecipientFilter>,
        after: &str,
        limit: usize,
    ) -> Result<Vec<ListedRecipient>, StoreFailure> {
        match filter {
            None => self.run(SELECT_ALL, values![letter, after, limit]).await?,
            Some(RecipientFilter::Bounced) => self.run(SELECT_BOUNCED, values![letter, after, limit]).await?,
            Some(state) => self.run(SELECT_IN_STATE, values![letter, after, limit, state.as_str()]).await?,
        }
        .all()
    }

    /// Returns why recipients of a letter were skipped, and how many for each reason.
    pub async fn skip_reasons(&self, letter: &str) -> Result<Vec<(String, u64)>, StoreFailure> {
        let rows: Vec<(String, i64)> = self.run(COUNT_SKIPPED, values![letter]).await?.all()?;
        Ok(rows.into_iter().map(|(reason, people)| (reason, count(people))).collect())
    }
}
