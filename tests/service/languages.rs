//! A site in another language than English, and pages in several.

use std::fs;
use std::path::Path;

use porchlight::config::RawSettings;
use porchlight::domain::mail::EmailAddress;
use porchlight::domain::signups::OPT_IN_TEXT;
use serde_json::json;

use crate::harness::{Answer, Program, Service, on_each_database_with, on_one_database_with};

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn settings(folder: &Path) -> RawSettings {
    RawSettings {
        site_dir: Some(folder.display().to_string()),
        client_ip_header: Some("x-forwarded-for".to_owned()),
        trusted_proxies: Some("127.0.0.0/8".to_owned()),
        ..RawSettings::default()
    }
}

/// Sends a form as a browser without JavaScript does.
async fn post_form(service: &Service, path: &str, fields: &[(&str, &str)]) -> Answer {
    let form = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    let headers = [("content-type", "application/x-www-form-urlencoded"), ("x-forwarded-for", "203.0.113.7")];
    service.send(reqwest::Method::POST, path, &headers, form).await
}

const FRENCH_WORDS: &str = r#"
[fr.site]
language = "Français"
skip = "Aller au contenu"
privacy = "Confidentialité"
[fr.form]
email = "Votre adresse e-mail"
[fr.date]
format = "{day} {month} {year}"
first = "1er {month} {year}"
months = ["janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août", "septembre", "octobre", "novembre", "décembre"]
[fr.sentences]
"The email address is missing." = "Il manque l’adresse e-mail."
[fr.busy]
heading = "Un instant."
detail = "Trop de demandes. Réessayez dans {seconds} secondes."
"#;

const FRENCH_HOME: &str = "---\ntitle: Des robots\ndescription: Une page d’accueil en français, pour les essais de la langue.\n\
    last_updated: 2026-11-01\nlanguage: fr\ntranslation_of: /\n---\n# Des robots\n\nBonjour.\n\n## Télécharger {#download}\n\nVoici.\n";

#[tokio::test]
async fn a_page_in_another_language_has_its_words_its_forms_and_the_pages_after_them() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "words.toml", FRENCH_WORDS);
    write(folder.path(), "pages/fr/index.md", FRENCH_HOME);
    let about = "---\ntitle: À propos\ndescription: Une page.\nlast_updated: 2026-11-01\nlanguage: fr\ntranslation_of: /about\n---\n# À propos\n";
    write(folder.path(), "pages/fr/about.md", about);
    let after = "---\ntitle: Parti\ndescription: Une page.\nlast_updated: 2026-11-01\n---\n# C’est parti\n";
    write(folder.path(), "languages/fr/pages/download_started.md", after);
    on_one_database_with(settings(folder.path()), async |service| {
        let french = service.get("/fr").await.text();
        assert!(french.contains("<html lang=\"fr\">"), "{french}");
        for words in [
            "Aller au contenu",
            "Votre adresse e-mail",
            "name=\"page\" value=\"/fr\"",
            "data-words=",
            "href=\"/fr/about\"",
        ] {
            assert!(french.contains(words), "{words}: {french}");
        }
        assert!(french.contains(">Confidentialité</a>"), "{french}");
        let english = service.get("/").await.text();
        assert!(english.contains("<html lang=\"en\">") && !english.contains("data-words"), "{english}");
        for page in [&french, &english] {
            for (language, path) in [("en", "/"), ("fr", "/fr")] {
                let link =
                    format!("<link rel=\"alternate\" hreflang=\"{language}\" href=\"{}{path}\">", service.base_url());
                assert!(page.contains(&link), "{link}");
            }
        }
        assert!(english.contains("<a href=\"/fr\" lang=\"fr\" hreflang=\"fr\">Français</a>"), "{english}");
        assert!(
            service.get("/fr/about").await.text().contains("<time datetime=\"2026-11-01\">1er novembre 2026</time>")
        );

        let refused = post_form(service, "/download", &[("email", ""), ("page", "/fr")]).await;
        assert_eq!(refused.status, 400);
        assert!(refused.text().contains("Il manque l’adresse e-mail.") && refused.text().contains("Bonjour."));
        let english = post_form(service, "/download", &[("email", ""), ("page", "/about")]).await;
        assert!(english.text().contains("The email address is missing."), "no page with that form");
        let accepted = post_form(service, "/download", &[("email", "a@b.co"), ("page", "/fr")]).await;
        assert_eq!((accepted.status.as_u16(), accepted.header("location")), (303, "/fr/download/started"));
        assert!(service.get("/fr/download/started").await.text().contains("C’est parti"));
        let english = post_form(service, "/download", &[("email", "a@b.co")]).await;
        assert_eq!(english.header("location"), "/download/started");
        let json = service.post("/api/download", &json!({ "email": "" })).await;
        assert!(json.text().contains("The email address is missing."), "JSON stays English");
        for _ in 0..100 {
            post_form(service, "/download", &[("email", ""), ("page", "/fr")]).await;
        }
        let busy = post_form(service, "/download", &[("email", "c@b.co"), ("page", "/fr")]).await.text();
        assert!(busy.contains("<html lang=\"fr\">") && busy.contains("Trop de demandes. Réessayez dans "), "{busy}");
        assert!(busy.contains("name=\"page\" value=\"/fr\""), "{busy}");
    })
    .await;
}

#[tokio::test]
async fn the_language_of_a_site_is_that_of_all_its_pages_but_the_reference() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "site.toml", &format!("language = \"fr\"\n{}", include_str!("../../content/site.toml")));
    write(folder.path(), "words.toml", FRENCH_WORDS);
    on_one_database_with(settings(folder.path()), async |service| {
        for path in ["/", "/privacy", "/contact", "/nowhere", "/download/started", "/contact/sent"] {
            assert!(service.get(path).await.text().contains("<html lang=\"fr\">"), "{path}");
        }
        assert!(service.get("/developers").await.text().contains("<html lang=\"en\">"));
        let refused = post_form(service, "/download", &[("email", "")]).await;
        assert!(refused.text().contains("Il manque l’adresse e-mail."));
    })
    .await;
}

#[tokio::test]
async fn an_opt_in_records_the_text_that_the_person_agreed_to() {
    let folder = tempfile::tempdir().unwrap();
    let page = "---\ntitle: T\ndescription: D\nlast_updated: 2026-11-01\nlanguage: fr\ntranslation_of: /\n---\n# T\n\n## F {#download}\n";
    write(folder.path(), "pages/fr/index.md", page);
    write(folder.path(), "words.toml", "[en.form]\nopt_in = \"Tell me what is new, once a month.\"\n");
    let site_dir = Some(folder.path().display().to_string());
    on_each_database_with(RawSettings { site_dir, ..RawSettings::default() }, async |service| {
        for (email, more, text) in [
            ("ada@example.com", vec![], "Tell me what is new, once a month."),
            ("eve@example.com", vec![("page", "/fr")], "Envoyez-moi un e-mail par mois avec les nouveautés."),
        ] {
            let answer =
                post_form(service, "/download", &[vec![("email", email), ("updates", "on")], more].concat()).await;
            assert_eq!(answer.status, 303);
            assert_eq!(consented_text(service, email).await, text);
        }
        let program = json!({ "email": "bot@example.com", "updates": true });
        service.post("/api/download", &program).await.expect_ok();
        assert_eq!(consented_text(service, "bot@example.com").await, OPT_IN_TEXT);
    })
    .await;
}

async fn consented_text(service: &Service, email: &str) -> String {
    let store = service.database.store();
    let person = store.person_record(&EmailAddress::parse(email).unwrap()).await.unwrap();
    person.consents[0].text.clone().unwrap()
}

#[test]
fn faults_of_languages_and_translations_name_file_and_line() {
    let page = |more: &str| format!("---\ntitle: T\ndescription: D\nlast_updated: 2026-11-01\n{more}---\n# T\n");
    for (file, text, sentence) in [
        (
            "pages/x.md",
            page("language: french\n"),
            "pages/x.md has a fault in line 5: write a language as de, fr or pt-BR.",
        ),
        (
            "pages/x.md",
            page("language: fr\ntranslation_of: /abuot\n"),
            "line 6: there is no page /abuot that it could translate. Did you mean `/about`?",
        ),
        ("pages/x.md", page("translation_of: /about\n"), "line 5: /about has the same language, en; set `language`."),
        ("words.toml", "[fr.site]\nskp = \"x\"\n".to_owned(), ""),
        (
            "site.toml",
            format!("language = \"klingon\"\n{}", include_str!("../../content/site.toml")),
            "site.toml has a fault in line 1",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), file, &text);
        let site_dir = folder.path().display().to_string();
        let (code, output) = Program::run(Program::command(folder.path(), &["check", "--site-dir", &site_dir]));
        assert_eq!(code, i32::from(!sentence.is_empty()), "{output}");
        assert!(output.contains(sentence), "{sentence}\n{output}");
    }
}
