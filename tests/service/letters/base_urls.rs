//! The unsubscribe links of a letter have to work wherever it is read.

use super::{BASE_URL, LETTER, LetterFixture};
use crate::harness::{Database, Program};

#[tokio::test]
async fn a_letter_is_not_sent_with_links_that_lead_nowhere() {
    let mut fixture = LetterFixture::open(Database::migrated_sqlite().await).await;
    fixture.download("ada@example.com", true).await;
    let file = fixture.file("a.md", LETTER);
    let run = |arguments: &[&str], base_url: &str| {
        let whole = fixture.command(arguments);
        let mut command = Program::command(whole.get_current_dir().unwrap(), &[]);
        command.args(whole.get_args().map(|argument| if argument == BASE_URL { base_url.as_ref() } else { argument }));
        Program::run(command)
    };
    for base_url in [
        "http://127.0.0.1:8080",
        "https://127.0.0.1",
        "https://localhost",
        "https://localhost.",
        "https://troupe.localhost",
        "https://[::1]:8443",
        "http://troupe.example",
    ] {
        let (code, output) = run(&["send", &file, "--yes"], base_url);
        assert!(code == 2 && output.contains("`base_url`") && output.contains("https URL"), "{base_url}: {output}");
        for harmless in [&["preview", &file][..], &["test", &file, "--to", "me@troupe.example"]] {
            let (code, output) = run(harmless, base_url);
            assert_eq!(code, 0, "{base_url}: {output}");
        }
    }
    assert_eq!(fixture.service.database.count("letters").await, 0);
    assert_eq!(fixture.service.database.count("letter_months").await, 0);
    assert!(fixture.recipients().await.iter().all(|to| to == "me@troupe.example"));
    fixture.service.stop().await;
}
