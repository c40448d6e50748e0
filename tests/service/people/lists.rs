//! `porchlight people export` and `porchlight people import`

use std::fmt::Write;

use porchlight::config::RawSettings;
use serde_json::json;

use super::{data, download, join, json_of, run, shown};
use crate::harness::{Service, each_database, on_each_database};

fn file(service: &Service, text: &str) -> String {
    service.file("people.csv", text).display().to_string()
}

#[tokio::test]
async fn an_exported_list_can_be_imported_without_loss() {
    for (from, to) in each_database().await.into_iter().zip({
        let [sqlite, postgres] = each_database().await;
        [postgres, sqlite]
    }) {
        println!("from {from:?} to {to:?}");
        let (old, new) =
            (Service::start(RawSettings::default(), from).await, Service::start(RawSettings::default(), to).await);
        download(&old, "=cmd@example.com", true).await;
        download(&old, "'=cmd@example.com", false).await;
        download(&old, "+1@example.com", true).await;
        let sources = ["=HYPERLINK(\"x\")", "@x, y; z", "\t\"quoted\"\r\nlines", " spaced "];
        for (number, source) in sources.into_iter().enumerate() {
            let order = json!({ "email": format!("p{number}@example.com"), "updates": true, "source": source });
            old.post("/api/download", &order).await.expect_ok();
        }
        for _ in 0..3 {
            download(&old, "Bob@Example.com", false).await;
        }
        join(&old, "cyd@münchen.example").await;
        download(&old, "dan@example.com", true).await;
        assert_eq!(run(&old, &["people", "suppress", "dan@example.com"]).0, 0);

        let list = new.file("people.csv", "").display().to_string();
        assert_eq!(run(&old, &["people", "export", &list]).0, 0);
        let exported = std::fs::read_to_string(&list).unwrap();
        assert_eq!(exported, data(&old, &["people", "export"]));
        for row in exported.split(['\n', ',']) {
            assert!(!row.trim_start_matches('"').starts_with(['=', '+', '-', '@', '\t', '\r']), "{row:?}");
        }
        let (code, output) = run(&new, &["people", "import", &list, "--all-or-nothing"]);
        assert!(code == 0 && output.contains("10 people were added"), "{output}");
        assert_eq!(data(&new, &["people", "export"]), exported);
        let listed = |service| json_of(service, &["people", "list", "--json"]);
        assert_eq!(listed(&old), listed(&new));
        let bob = shown(&new, "bob@example.com");
        assert_eq!((&bob["downloads"], &bob["updates"], &bob["consents"]), (&json!(3), &json!(false), &json!([])));
        assert!(download(&new, "bob@example.com", false).await, "an imported person is known");
        assert!(join(&new, "CYD@münchen.example").await);
        let (code, output) = run(&new, &["people", "import", &list]);
        assert!(code == 0 && output.contains("0 people were added, 10 already existed"), "{output}");
        old.stop().await;
        new.stop().await;
    }
}

#[tokio::test]
async fn an_import_opts_nobody_in_unless_a_column_says_so() {
    on_each_database(async |service| {
        let list = file(
            service,
            "\u{feff}Email,opted_in_at,updates,plan\r\n\
             ada@example.com,2024-05-01,,gold\r\n\
             bob@example.com,2024-05-01,no,\r\n\
             cyd@example.com,2024-05-01,yes,\r\n",
        );
        let (code, output) = run(service, &["people", "import", &list]);
        assert_eq!(code, 0, "{output}");
        assert!(output.contains("unknown column \"plan\" is ignored"), "{output}");
        let mailed = json_of(service, &["people", "list", "--json", "--updates"]);
        assert_eq!(mailed.as_array().unwrap().len(), 1);
        let cyd = shown(service, "cyd@example.com");
        let consent = json!([{
            "at": "2024-05-01T00:00:00Z", "via": "import", "source": null, "wording": 0, "text": null, "stands": true,
            "pending": false, "confirmed_at": null, "withdrawn": null,
        }]);
        assert_eq!((&cyd["consents"], &cyd["first_seen"]), (&consent, &json!("2024-05-01T00:00:00Z")));
    })
    .await;
}

#[tokio::test]
async fn an_import_does_not_change_existing_people() {
    on_each_database(async |service| {
        download(service, "Ada@example.com", true).await;
        download(service, "bob@example.com", false).await;
        run(service, &["people", "suppress", "eve@example.com"]);
        let before = data(service, &["people", "export"]);
        let list = file(
            service,
            "email,updates,downloads,waitlist,suppressed\n\
             ada@example.com,false,9,true,false\n\
             BOB@example.com,true,9,true,false\n\
             eve@example.com,true,0,false,false\n",
        );
        let (code, output) = run(service, &["people", "import", &list]);
        assert!(code == 0 && output.contains("1 person was added, 2 already existed"), "{output}");
        let eve = shown(service, "eve@example.com");
        assert_eq!(
            (&eve["suppressed"], &eve["updates"]),
            (&json!(true), &json!(false)),
            "an import does not remove a suppression"
        );
        let after = data(service, &["people", "export"]);
        let kept: Vec<_> = after.lines().filter(|line| !line.starts_with("eve@")).collect();
        assert_eq!(kept, before.lines().collect::<Vec<_>>());

        let list = file(service, "email,suppressed\nada@example.com,true\n");
        assert_eq!(run(service, &["people", "import", &list]).0, 0);
        assert_eq!(shown(service, "ada@example.com")["updates"], false, "an import may suppress an existing person");
    })
    .await;
}

#[tokio::test]
async fn invalid_rows_are_reported_by_line_and_skipped_or_reject_the_whole_file() {
    on_each_database(async |service| {
        let mut text = b"email,source,updates\n\
            ada@example.com,\"two\nlines\",true\n\
            nobody,,true\n\
            bob@example.com,,perhaps\n\
            cyd@example.com\n\
            dan@example.com,\xff,\n\
            \n\
            eve@example.com,,\n"
            .to_vec();
        let list = service.file("people.csv", &text).display().to_string();
        let lines = [
            "Line 4: email is \"nobody\"",
            "Line 5: updates is \"perhaps\"",
            "Line 6: it has 1 cell,",
            "Line 7: it is not in UTF-8",
        ];

        let (code, output) = run(service, &["people", "import", &list, "--all-or-nothing"]);
        assert_eq!((code, service.database.count("people").await), (1, 0), "{output}");
        assert!(
            lines.iter().all(|line| output.contains(line)) && output.contains("4 of 6 rows are invalid"),
            "{output}"
        );

        let (code, output) = run(service, &["people", "import", &list]);
        assert_eq!((code, service.database.count("people").await), (1, 2), "{output}");
        assert!(
            lines.iter().all(|line| output.contains(line)) && output.contains("4 of 6 rows were skipped"),
            "{output}"
        );

        text.clear();
        for (text, expected) in [
            ("", "has no column"),
            ("name\nAda\n", "has no column \"email\""),
            ("email,email\n", "twice"),
            ("email;updates\nada@example.com;true\n", "separated by semicolons"),
            ("name\temail\nAda\tada@example.com\n", "separated by tabs"),
            (
                "email,source\nx@example.com,\"a\nb\"\ny@example.com,\"open\nz@example.com,\n",
                "opens in line 4 is never",
            ),
            ("\"email\nada@example.com\n", "opens in line 1 is never closed"),
        ] {
            let (code, output) = run(service, &["people", "import", &file(service, text)]);
            assert!(code == 1 && output.contains(expected), "{output}");
        }
        let utf_16: Vec<_> = "\u{feff}email\nada@example.com\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        for bytes in [utf_16, b"email,n\xe4me\nada@example.com,x\n".to_vec()] {
            let list = service.file("other.csv", bytes).display().to_string();
            let (code, output) = run(service, &["people", "import", &list]);
            assert!(code == 1 && output.contains("it is not in UTF-8; save it as"), "{output}");
        }
        let (code, output) = run(service, &["people", "import", "nowhere.csv"]);
        assert!(code == 1 && output.contains("nowhere.csv cannot be read"), "{output}");
    })
    .await;
}

#[tokio::test]
async fn the_first_row_of_a_duplicate_address_counts() {
    on_each_database(async |service| {
        let list = file(
            service,
            "email,updates,suppressed\n\
             ada@example.com,false,\n\
             bob@example.com,true,\n\
             ADA@example.com,true,\n\
             bob@example.com,true,true\n",
        );
        for more in [&["--all-or-nothing"][..], &[]] {
            let (code, output) = run(service, &[&["people", "import", &list], more].concat());
            assert_eq!(code, 0, "{output}");
            let duplicate = "Line 4: ADA@example.com is already in line 2, so this line is ignored.";
            assert_eq!(output.matches(duplicate).count(), 1, "{output}");
        }
        assert_eq!(shown(service, "ada@example.com")["updates"], false);
        assert_eq!(shown(service, "bob@example.com")["suppressed"], true, "a suppression counts in any row");
    })
    .await;
}

#[tokio::test]
async fn a_long_list_can_be_imported_while_the_service_runs() {
    on_each_database(async |service| {
        let mut text = "email,updates,downloads\n".to_owned();
        for number in 0..3_000 {
            let _ = writeln!(text, "p{number}@example.com,{},1", number % 2 == 0);
        }
        text.push_str("P7@example.com,true,1\n");
        let list = file(service, &text);
        let import = {
            let command = super::command(service, &["people", "import", &list]);
            tokio::task::spawn_blocking(move || crate::harness::Program::run(command))
        };
        let mut number = 0;
        while !import.is_finished() {
            number += 1;
            let order = json!({ "email": format!("p{}@example.com", number % 50) });
            let status = service.post("/api/download", &order).await.status;
            assert!(status == 200 || status == 503, "{status}: a busy service may respond with 503");
        }
        let (code, output) = import.await.unwrap();
        assert_eq!(code, 0, "{output}");
        assert_eq!(service.database.count("people").await, 3_000);
        assert_eq!(
            service
                .database
                .number(
                    "SELECT COUNT(*) FROM people WHERE opt_in IS NOT NULL AND opt_in NOT IN (SELECT id FROM consents)"
                )
                .await,
            0
        );
        assert_eq!(data(service, &["people", "list"]).lines().count(), 3_000);
    })
    .await;
}

#[tokio::test]
async fn all_or_nothing_holds_for_every_failure_and_for_standard_input() {
    on_each_database(async |service| {
        service.database.refuse_poison_in("people").await;
        let mut text = "email\n".to_owned();
        for number in 0..2_500 {
            writeln!(text, "p{number}@example.com").unwrap();
        }
        let list = file(service, &format!("{text}poison@example.com\n"));
        let (code, output) = run(service, &["people", "import", &list, "--all-or-nothing"]);
        assert_eq!((code, service.database.count("people").await), (1, 0), "{output}");

        let mut command = super::command(service, &["people", "import", "-", "--all-or-nothing"]);
        command.stdin(std::fs::File::open(file(service, &text)).unwrap());
        let (code, output) = crate::harness::Program::run(command);
        assert_eq!((code, service.database.count("people").await), (0, 2_500), "{output}");
    })
    .await;
}

#[tokio::test]
async fn a_person_with_many_downloads_is_exported_and_imported() {
    on_each_database(async |service| {
        let list = service.file("many.csv", "email,downloads\nada@example.com,12001\n").display().to_string();
        let (code, output) = run(service, &["people", "import", &list]);
        assert_eq!(code, 0, "{output}");
        assert_eq!(service.database.count("signups").await, 12001);
        let (_, exported) = run(service, &["people", "export"]);
        run(service, &["people", "erase", "ada@example.com", "--yes"]);
        let again = service.file("again.csv", &exported).display().to_string();
        let (code, output) = run(service, &["people", "import", &again]);
        assert_eq!((code, service.database.count("signups").await), (0, 12001), "{output}");
        assert_eq!(run(service, &["people", "export"]).1, exported);
    })
    .await;
}
