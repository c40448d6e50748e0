//! `porchlight letter recipients`

use std::io;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use csv::IntoInnerError;
use serde_json::{Value, json};

use crate::cli::failure::{Failure, OrFail};
use crate::cli::people::escape_formula;
use crate::cli::terminal::{ListPrinter, format_row, print_line, sanitize_line, terminal_width};
use crate::domain::letters::{LetterReference, RecipientFilter};
use crate::domain::parse::Invalid;
use crate::domain::sha256::Sha256;
use crate::domain::time::Timestamp;
use crate::store::{ListedRecipient, Store};

#[derive(Args, Debug)]
pub(in crate::cli) struct RecipientsArguments {
    /// Id of the letter, or its beginning, as `letter list` shows it
    #[arg(value_parser = LetterReference::parse)]
    letter: LetterReference,
    /// List only recipients in this state
    #[arg(long, value_parser = PossibleValuesParser::new(RecipientFilter::ALL.map(RecipientFilter::as_str))
        .try_map(|name| RecipientFilter::parse(&name).ok_or_else(|| Invalid::new("no state has this name"))))]
    state: Option<RecipientFilter>,
    /// Print CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How many recipients are read from the database at a time.
const BATCH_SIZE: usize = 1000;

const COLUMNS: &str = "email,state,at,trouble,bounce,bounced_at";

impl RecipientsArguments {
    pub(super) async fn run(self, store: &Store) -> Result<(), Failure> {
        let letter = find(store, &self.letter).await?.hex();
        let (width, mut after) = (terminal_width(), String::new());
        let mut list = ListPrinter::new(self.json, None);
        if self.csv {
            print_line(COLUMNS);
        }
        loop {
            let page = store.listed_recipients(&letter, self.state, &after, BATCH_SIZE).await;
            let page = page.or_fail(|failure| format!("The list is incomplete: {failure}."))?;
            let Some(final_one) = page.last() else { break };
            after.clone_from(&final_one.address);
            for recipient in &page {
                let text = if self.csv { csv_row(recipient)? } else { line(recipient, width) };
                if !list.push(&to_json(recipient), &text) {
                    return Ok(());
                }
            }
        }
        list.finish("No recipients found.");
        Ok(())
    }
}

/// Finds a letter that was started.
pub(super) async fn find(store: &Store, reference: &LetterReference) -> Result<Sha256, Failure> {
    let mut found = store.letters_by_reference(reference).await?.into_iter().filter_map(|id| Sha256::from_hex(&id));
    let name = reference.as_str();
    match (found.next(), found.next().is_none()) {
        (Some(letter), true) => Ok(letter),
        (Some(_), false) => Err(Failure::new(format!(
            "More than one letter begins with {name}. `porchlight letter list --json` shows their full ids."
        ))),
        (None, _) => {
            let list = "`porchlight letter list` lists all that have";
            Err(Failure::new(format!("No letter {name} has been sent, or begun to be. {list}.")))
        }
    }
}

fn to_json(recipient: &ListedRecipient) -> Value {
    let bounce = recipient.bounce.as_ref().zip(recipient.bounced_at);
    json!({
        "email": recipient.email,
        "state": recipient.state,
        "at": recipient.at,
        "trouble": recipient.trouble,
        "bounce": bounce.map(|(status, at)| json!({ "at": at, "status": status })),
    })
}

fn line(recipient: &ListedRecipient, width: Option<usize>) -> String {
    let ListedRecipient { email, state, at, trouble, bounce, .. } = recipient;
    let bounce = bounce.as_ref().map(|status| format!(", bounced ({status})")).unwrap_or_default();
    let trouble = trouble.as_ref().map(|trouble| format!(": {trouble}")).unwrap_or_default();
    let cells = [(at.date(), 10), (state.clone(), 9)];
    format_row(&cells, &sanitize_line(&format!("{email}{bounce}{trouble}")), width)
}

/// One line: no cell has a line break.
fn csv_row(recipient: &ListedRecipient) -> Result<String, Failure> {
    let ListedRecipient { email, state, at, trouble, bounce, bounced_at, .. } = recipient;
    let (trouble, bounce) = (trouble.as_deref().unwrap_or_default(), bounce.as_deref().unwrap_or_default());
    let bounced_at = bounced_at.map(Timestamp::rfc3339).unwrap_or_default();
    let cells = [email, state, &at.rfc3339(), &sanitize_line(trouble), bounce, &bounced_at];
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(cells.map(escape_formula)).map_err(io::Error::from)?;
    let row = writer.into_inner().map_err(IntoInnerError::into_error)?;
    Ok(String::from_utf8_lossy(&row).trim_end().to_owned())
}
