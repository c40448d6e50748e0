//! `porchlight letter send`

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use indicatif::ProgressBar;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::copies::{check_size, mailer_and_templates};
use super::letter_file::read;
use super::status::{NO_LETTERS, counts, outcome};
use crate::actions::{LetterEnd, LetterEvent, LetterSender, opt_in_sentences, run_letter};
use crate::cli::activity::record;
use crate::cli::failure::Failure;
use crate::cli::run::{Access, open_store};
use crate::cli::terminal::{confirm, eprint_line, progress_style, sanitize_line};
use crate::clock::Clock;
use crate::config::Settings;
use crate::domain::desk::Change;
use crate::domain::letters::{Letter, LetterRun, letter_path};
use crate::domain::sha256::Sha256;
use crate::domain::text::quantity;
use crate::store::{StartedLetter, Store};

#[derive(Args, Debug)]
pub(in crate::cli) struct SendArguments {
    /// Markdown file with the letter [default: the letter that was started last, as it is stored]
    file: Option<PathBuf>,
    /// Go on with a letter that was stopped at the desk
    #[arg(long)]
    go_on: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

pub(super) async fn send(settings: &Settings, arguments: SendArguments) -> Result<(), Failure> {
    let SendArguments { file, go_on, yes } = arguments;
    let letter = file.as_deref().map(read).transpose()?;
    LetterSender::check_base_url(&settings.public_url())?;
    let store = open_store(settings, Access::Create).await?;
    let letter = match letter {
        Some(letter) => letter,
        None => latest(&store).await?,
    };
    let id = letter.id;
    let (mailer, templates, contact_to) = mailer_and_templates(settings)?;
    check_size(settings, &templates, &letter)?;
    let (base_url, clock) = (settings.public_url(), Clock::System);
    let mut sender = LetterSender::new(store.clone(), mailer, Arc::new(templates), base_url, letter, contact_to, clock);
    sender.is_archived = settings.letters_archive;
    sender.terms.interval = Some(Duration::from_secs(1) / settings.letter_rate);
    let run = store.letter_run(&id).await?;
    check_run(run.as_ref(), go_on)?;
    let started = store.letter(&id).await?;
    if let Some(letter) = started.as_ref().filter(|letter| letter.counts.waiting == 0) {
        eprint_line(&format!("This letter has already been sent. {}", counts(letter)));
        return Ok(());
    }
    for sentence in opt_in_sentences(store.opt_in_counts().await?, settings.confirm_updates) {
        eprint_line(&sentence);
    }
    let forecast = store.letter_forecast(started.as_ref().map(|_| &id), Clock::System.now()).await?;
    let was_sent = started.as_ref().is_some_and(|letter| letter.counts.sent + letter.counts.uncertain > 0);
    match forecast.nobody() {
        // Those who wait must not get it any more. Sending notes that, and asks nobody.
        Some(_) if was_sent => {}
        Some(nobody) => return Err(Failure::new(nobody)),
        None => {
            forecast.others_in_words().iter().for_each(|others| eprint_line(others));
            if settings.letters_archive && started.as_ref().is_none_or(|letter| letter.archived) {
                let page = letter_path(&id, &sender.letter.subject);
                eprint_line(&format!("Everybody can read it at {} (`letters_archive`).", sender.base_url.to(&page)));
            }
            let people = quantity(forecast.recipients, "person", "people");
            confirm(&format!("Send “{}” to {people}?", sender.letter.subject), yes, "Nothing was sent.")?;
        }
    }
    if let Some((LetterRun::Stopped, _)) = run {
        store.change_letter_run(&id, LetterRun::Stopped, LetterRun::Command, None).await?;
    }
    let remaining = started.as_ref().map_or(forecast.recipients + forecast.others(), |letter| letter.counts.waiting);
    sender.start().await.map_err(|failure| stopped(&failure.to_string(), started.as_ref()))?;
    // If nobody gets it any more, sending only notes that.
    if forecast.recipients > 0 {
        let change = if started.is_some() { Change::ContinuedLetter } else { Change::StartedLetter };
        record(&store, change(sender.letter.subject.clone())).await;
    }
    let result = run_to_end(&mut sender, remaining).await?;
    let letter = store.letter(&id).await?;
    if let Some(letter) = &letter {
        eprint_line(&outcome(&store, letter).await?);
    }
    result.map_err(|end| match end {
        LetterEnd::NotOurs(_) => Failure::new(format!("{end}. {}", waiting(letter.as_ref()))),
        end => stopped(&sanitize_line(&end.to_string()), letter.as_ref()),
    })
}

/// Refuses a letter that the service sends, or that was stopped.
fn check_run(run: Option<&(LetterRun, Option<String>)>, go_on: bool) -> Result<(), Failure> {
    Err(Failure::new(match run {
        None | Some((LetterRun::Command, _)) => return Ok(()),
        Some((LetterRun::Stopped, _)) if go_on => return Ok(()),
        Some((LetterRun::Stopped, None)) => {
            "This letter was stopped at the desk, so nothing was sent. `--go-on` goes on with it.".to_owned()
        }
        Some((LetterRun::Stopped, Some(reason))) => {
            format!(
                "This letter was stopped, so nothing was sent: {}. `--go-on` goes on with it.",
                sanitize_line(reason)
            )
        }
        Some((LetterRun::Service, _)) => {
            "The service sends this letter. `porchlight letter status` shows how far it is.".to_owned()
        }
    }))
}

/// Sends, and shows the progress. Ctrl-C and SIGTERM end it after the copy that is being sent.
async fn run_to_end(sender: &mut LetterSender, count: u64) -> Result<Result<(), LetterEnd>, Failure> {
    let style = progress_style("  sending {bar:32} {pos} of {len}, {per_sec}, {eta} left");
    let bar = ProgressBar::new(count).with_style(style);
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        stopped.cancel();
    });
    let result = run_letter(sender, &stop, |event| match event {
        LetterEvent::Finished => bar.inc(1),
        LetterEvent::Unavailable(reason, pause) => bar.suspend(|| {
            let (seconds, reason) = (quantity(pause.as_secs(), "second", "seconds"), sanitize_line(reason));
            eprint_line(&format!(
                "The mail server is unavailable: {reason}. Trying again in {seconds}, for up to an hour. Ctrl-C stops."
            ));
        }),
    });
    let result = result.await;
    if result.is_ok() {
        bar.finish_and_clear();
    }
    Ok(result)
}

/// The letter that was started last, as it is stored.
async fn latest(store: &Store) -> Result<Letter, Failure> {
    let latest = store.latest_letter().await?.and_then(|letter| Sha256::from_hex(&letter.id));
    let id = latest.ok_or_else(|| Failure::new(NO_LETTERS))?;
    store.stored_letter(&id).await?.ok_or_else(|| Failure::new(NO_LETTERS))
}

fn stopped(reason: &str, letter: Option<&StartedLetter>) -> Failure {
    Failure::new(format!("{reason}. {} Run the same command to continue.", waiting(letter)))
}

fn waiting(letter: Option<&StartedLetter>) -> String {
    let waiting = letter.map_or(0, |letter| letter.counts.waiting);
    quantity(waiting, "recipient has not been sent to yet.", "recipients have not been sent to yet.")
}
