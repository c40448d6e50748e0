//! `porchlight people import` with exports of Mailchimp, Buttondown, Ghost and listmonk.

use std::fmt::Write;

use serde_json::{Value, json};

use super::{data, listed, run, shown};
use crate::harness::{Program, Service, on_each_database};

/// As Mailchimp writes it: with CRLF, and quotes where it needs them.
const MAILCHIMP: &str = "\u{feff}\"Email Address\",\"First Name\",\"Last Name\",MEMBER_RATING,OPTIN_TIME,OPTIN_IP,CONFIRM_TIME,\
    CONFIRM_IP,LATITUDE,LONGITUDE,GMTOFF,DSTOFF,TIMEZONE,CC,REGION,LAST_CHANGED,LEID,EUID,NOTES,TAGS\r\n\
    Ada@example.com,Ada,Lovelace,4,\"2018-06-12 07:53:28\",203.0.113.7,\"2018-06-12 08:00:00\",203.0.113.7,,,,,,,,\
    \"2018-06-13 00:00:00\",3e4f9b94,fa7ae01bbebc,,\"\"\"beta\"\",\"\"press\"\"\"\r\n\
    bob@example.com,,,2,,,\"2019-01-02 03:04:05\",,,,,,,,,\"2019-01-02 03:04:05\",3e4f9b95,fa7ae01bbebd,\"two\r\nlines\",\r\n\
    cyd@example.com,,,2,,,,,,,,,,,,\"2020-01-02 03:04:05\",3e4f9b96,fa7ae01bbebe,,\r\n";

/// As for [`MAILCHIMP`], with one more column.
fn mailchimp_file(column: &str, row: &str) -> String {
    format!(
        "Email Address,First Name,MEMBER_RATING,OPTIN_TIME,CONFIRM_TIME,LAST_CHANGED,{column},LEID,EUID\r\n{row}\r\n"
    )
}

const BUTTONDOWN: &str = "id,email,notes,metadata,tags,creation_date,subscriber_type,subscription_date,unsubscription_date\n\
    1,ada@example.com,,\"{\"\"city\"\": \"\"Paris\"\"}\",\"beta,press\",2024-01-05 10:00:00.123456+00:00,regular,2024-01-06T09:00:00Z,\n\
    2,bob@example.com,,{},,2024-01-05T10:00:00Z,premium,,\n\
    3,cyd@example.com,,{},,2024-01-05T10:00:00Z,unactivated,,\n\
    4,dan@example.com,,{},,2024-01-05T10:00:00Z,unsubscribed,2024-01-05T10:00:00Z,2024-02-01T00:00:00Z\n\
    5,eve@example.com,,{},,2024-01-05T10:00:00Z,undeliverable,,\n\
    6,fay@example.com,,{},,2024-01-05T10:00:00Z,regular,,2024-02-01T00:00:00Z\n\
    7,gus@example.com,,{},,2024-01-05T10:00:00Z,removed,,\n\
    8,hal@example.com,,{},,,regular,,\n";

const GHOST: &str = "id,email,name,note,subscribed_to_emails,complimentary_plan,stripe_customer_id,created_at,deleted_at,labels,tiers\r\n\
    65a1,ada@example.com,Ada,,true,false,,2024-01-15T10:00:00.000Z,,\"beta,press\",\r\n\
    65a2,bob@example.com,,\"a note,\nof two lines\",true,true,cus_1,2024-02-01T12:30:00.000Z,,,Gold\r\n\
    65a3,cyd@example.com,,,false,false,,2024-02-01T12:30:00.000Z,,,\r\n\
    65a4,dan@example.com,,,true,false,,2024-02-01T12:30:00.000Z,2024-03-01T00:00:00.000Z,,\r\n\
    65a5,eve@example.com,,,,,,2024-02-01T12:30:00.000Z,,,";

const LISTMONK: &str = "uuid,email,name,attributes,status,created_at,updated_at\n\
    5d9e0a0c-0b5a-4f0e-8d66-000000000001,ada@example.com,Ada,\"{\"\"city\"\":\"\"Paris\"\"}\",enabled,2024-03-01 12:34:56.789012 +0530 IST,2024-03-01 12:34:56.789012 +0000 UTC\n\
    5d9e0a0c-0b5a-4f0e-8d66-000000000002,bob@example.com,Bob,{},disabled,2024-03-01 12:34:56 +0000 UTC,2024-03-01 12:34:56 +0000 UTC\n\
    5d9e0a0c-0b5a-4f0e-8d66-000000000003,cyd@example.com,Cyd,{},blocklisted,2024-03-01 12:34:56 +0000 UTC,2024-03-01 12:34:56 +0000 UTC\n";

fn file(service: &Service, name: &str, text: &str) -> String {
    service.file(name, text).display().to_string()
}

/// The addresses without their domain, in the order of the alphabet.
fn in_state(service: &Service, state: &str) -> String {
    let mut names: Vec<_> =
        listed(service, &["--state", state]).iter().map(|email| email.to_lowercase()[..3].to_owned()).collect();
    names.sort();
    names.join(" ")
}

/// Imports a file, once it was tried and refused without a terminal, and then a second time.
fn import(service: &Service, name: &str, text: &str, summary: &str) -> String {
    let list = file(service, name, text);
    let before = data(service, &["people", "export"]);
    let (code, output) = run(service, &["people", "import", &list, "--dry-run"]);
    assert!(code == 0 && output.contains(summary) && output.contains("\nNothing was imported."), "{output}");
    let (code, asked) = run(service, &["people", "import", &list]);
    assert!(code == 2 && asked.contains(summary) && asked.contains("Add --yes"), "{asked}");
    assert_eq!(data(service, &["people", "export"]), before);
    let (code, output) = run(service, &["people", "import", &list, "--yes"]);
    assert!(code == 0 && output.contains(summary) && !output.contains("Nothing was"), "{output}");
    let after = data(service, &["people", "export"]);
    let (code, again) = run(service, &["people", "import", &list, "--yes"]);
    assert!(code == 0 && again.contains("0 people were added") && again.contains("Nothing was changed."), "{again}");
    assert_eq!(data(service, &["people", "export"]), after);
    output
}

/// The current consent of a person: its time, origin and confirmation.
fn consent(service: &Service, email: &str) -> Value {
    let consent = &shown(service, email)["consents"][0];
    json!([consent["at"], consent["via"], consent["source"], consent["wording"], consent["confirmed_at"]])
}

#[tokio::test]
async fn an_export_of_mailchimp_is_imported_with_its_files_of_those_who_left() {
    on_each_database(async |service| {
        let summary = "An export of Mailchimp, 3 rows: 2 opted in, 0 suppressed, 1 neither.";
        let output = import(service, "subscribed_email_audience_export_1.csv", MAILCHIMP, summary);
        for told in [
            "time in OPTIN_TIME, else CONFIRM_TIME",
            "not imported: first name, last name, optin_ip,",
            "files of their own",
        ] {
            assert!(output.contains(told), "{told}: {output}");
        }
        assert_eq!(in_state(service, "opted-in"), "ada bob");
        assert_eq!(
            consent(service, "ada@example.com"),
            json!(["2018-06-12T07:53:28Z", "import", "Mailchimp", 0, "2018-06-12T08:00:00Z"])
        );
        assert_eq!(
            consent(service, "bob@example.com"),
            json!(["2019-01-02T03:04:05Z", "import", "Mailchimp", 0, null])
        );
        assert_eq!(shown(service, "cyd@example.com")["first_seen"], "2020-01-02T03:04:05Z");

        let left = mailchimp_file("UNSUB_TIME", "bob@example.com,,2,2019-01-02 03:04:05,,,2020-01-01 00:00:00,1,2");
        let output = import(service, "left.csv", &left, "1 row: 0 opted in, 1 suppressed, 0 neither.");
        assert!(output.contains("0 people were added, 1 already existed; 1 suppression is new."), "{output}");
        let returned = mailchimp_file("CLEAN_TIME", "dan@example.com,,2,2019-01-02 03:04:05,,,2020-01-01 00:00:00,1,2");
        import(service, "returned.csv", &returned, "1 row: 0 opted in, 1 suppressed, 0 neither.");
        assert_eq!(shown(service, "dan@example.com")["suppression"]["reason"], "no-mailbox");
        let others = mailchimp_file("Company", "eve@example.com,,2,2019-01-02 03:04:05,,,Acme,1,2");
        import(
            service,
            "nonsubscribed_email_audience_export_1.csv",
            &others,
            "1 row: 0 opted in, 0 suppressed, 1 neither.",
        );
        let others = mailchimp_file("Company", "fay@example.com,,2,2019-01-02 03:04:05,,,Acme,1,2");
        import(service, "unsubscribed_members_export_1.csv", &others, "1 row: 0 opted in, 1 suppressed, 0 neither.");
        assert_eq!(
            (in_state(service, "opted-in").as_str(), in_state(service, "suppressed").as_str()),
            ("ada", "bob dan fay")
        );
    })
    .await;
}

#[tokio::test]
async fn an_export_of_buttondown_is_imported_by_the_type_of_each_subscriber() {
    on_each_database(async |service| {
        let summary = "An export of Buttondown, 8 rows: 2 opted in, 4 suppressed, 2 neither.";
        import(service, "subscribers.csv", BUTTONDOWN, summary);
        assert_eq!(
            (in_state(service, "opted-in").as_str(), in_state(service, "suppressed").as_str()),
            ("ada bob", "dan eve fay gus")
        );
        assert_eq!(
            consent(service, "ada@example.com"),
            json!(["2024-01-06T09:00:00Z", "import", "Buttondown", 0, null])
        );
        assert_eq!(consent(service, "bob@example.com")[0], "2024-01-05T10:00:00Z");
        assert_eq!(shown(service, "eve@example.com")["suppression"]["reason"], "no-mailbox");
        let list = BUTTONDOWN
            .replace("email,", "email_address,")
            .replace("subscriber_type", "type")
            .replace("@example.com", "@other.example");
        import(service, "newer.csv", &list, summary);
        let list = file(service, "unknown.csv", &BUTTONDOWN.replace("premium", "emperor"));
        let (code, output) = run(service, &["people", "import", &list, "--dry-run"]);
        assert!(
            code == 1
                && output.contains("Line 3: subscriber_type is \"emperor\", which is not a state that Buttondown has."),
            "{output}"
        );
        assert!(output.contains("1 of 8 rows is invalid; nothing was imported."), "{output}");
    })
    .await;
}

#[tokio::test]
async fn an_export_of_ghost_is_imported_by_who_is_subscribed() {
    on_each_database(async |service| {
        let summary = "An export of Ghost, 5 rows: 2 opted in, 2 suppressed, 1 neither.";
        import(service, "members.ghost.csv", GHOST, summary);
        assert_eq!(
            (in_state(service, "opted-in").as_str(), in_state(service, "suppressed").as_str()),
            ("ada bob", "cyd dan")
        );
        assert_eq!(consent(service, "ada@example.com"), json!(["2024-01-15T10:00:00Z", "import", "Ghost", 0, null]));
        assert_eq!(shown(service, "ada@example.com")["first_seen"], "2024-01-15T10:00:00Z");
    })
    .await;
}

#[tokio::test]
async fn an_export_of_listmonk_is_imported_by_status_and_says_what_it_does_not_know() {
    on_each_database(async |service| {
        let summary = "An export of listmonk, 3 rows: 1 opted in, 2 suppressed, 0 neither.";
        let output = import(service, "subscribers.csv", LISTMONK, summary);
        assert!(output.contains("does not say who has confirmed"), "{output}");
        assert_eq!(
            (in_state(service, "opted-in").as_str(), in_state(service, "suppressed").as_str()),
            ("ada", "bob cyd")
        );
        assert_eq!(consent(service, "ada@example.com"), json!(["2024-03-01T07:04:56Z", "import", "listmonk", 0, null]));
        let mut list = "uuid,email,status,subscription_status,created_at\n".to_owned();
        for (name, state) in [("dan", "confirmed"), ("eve", "unconfirmed"), ("fay", "unsubscribed")] {
            writeln!(list, "1,{name}@example.com,enabled,{state},2024-03-01 12:34:56 +0000 UTC").unwrap();
        }
        import(service, "list.csv", &list, "3 rows: 1 opted in, 1 suppressed, 1 neither.");
        assert_eq!(
            (in_state(service, "opted-in").as_str(), in_state(service, "suppressed").as_str()),
            ("ada dan", "bob cyd fay")
        );
    })
    .await;
}

#[tokio::test]
async fn what_several_lines_have_in_common_is_one_sentence_with_the_lines_as_the_file_counts_them() {
    on_each_database(async |service| {
        for line_break in ["\n", "\r\n"] {
            let mut text = "id,email,note,subscribed_to_emails,created_at\n\n1,ada@example.com,\"two\nlines\",true,2024-01-15T10:00:00.000Z\n".to_owned();
            for number in 0..9 {
                writeln!(text, "2,nobody{number},,true,2024-01-15T10:00:00.000Z").unwrap();
            }
            text += "3,bob@example.com,,perhaps,2024-01-15T10:00:00.000Z\n4,ADA@example.com,,true,\n5,ada@example.com,,true,\n6,cyd@example.com,,true,2099-01-01";
            let list = file(service, "members.csv", &text.replace('\n', line_break));
            let (code, output) = run(service, &["people", "import", &list, "--dry-run"]);
            assert!(code == 1 && output.contains("12 rows: 1 opted in, 0 suppressed, 0 neither, 11 invalid."), "{output}");
            for line in [
                "Lines 5, 6, 7 and 6 more: email is not an address: it needs exactly one @, as in name@example.com.",
                "Line 14: subscribed_to_emails is \"perhaps\", which is not a state that Ghost has.",
                "Lines 15 and 16: the addresses are already in earlier lines, so these lines are ignored.",
                "Line 17: created_at is \"2099-01-01\", which is in the future.",
            ] {
                assert!(output.contains(line), "{line}: {output}");
            }
            assert_eq!(output.matches("nobody").count(), 0, "{output}");
            let (code, output) = run(service, &["people", "import", &list, "--all-or-nothing", "--yes"]);
            assert!(code == 1 && output.contains("11 of 12 rows are invalid, so nothing was imported."), "{output}");
            assert_eq!(service.database.count("people").await, 0);
        }
    })
    .await;
}

#[tokio::test]
async fn a_list_that_says_itself_who_is_opted_in_is_not_taken_for_an_export_of_another_tool() {
    on_each_database(async |service| {
        let text = "email,updates,creation_date,uuid,status\nada@example.com,no,2024-01-15,1,enabled\n";
        let list = file(service, "people.csv", text);
        let (code, output) = run(service, &["people", "import", &list, "--dry-run"]);
        let summary = "A list in the format of this service, 1 row: 0 opted in, 0 suppressed, 1 neither.";
        assert!(code == 0 && output.contains(summary) && output.contains("unknown column \"status\""), "{output}");
        assert_eq!(service.database.count("people").await, 0);
        assert_eq!(run(service, &["people", "import", &list]).0, 0, "as always, without a question");
        assert_eq!(in_state(service, "opted-in"), "");

        let mut command = super::command(service, &["people", "import", "-", "--yes"]);
        command.stdin(std::fs::File::open(file(service, "members.csv", GHOST)).unwrap());
        let (code, output) = Program::run(command);
        assert!(code == 1 && output.contains("has to be a file"), "{output}");
    })
    .await;
}

#[test]
fn a_dry_run_needs_no_database_and_makes_none() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("members.csv"), GHOST).unwrap();
    let (code, output) =
        Program::run(Program::command(folder.path(), &["people", "import", "members.csv", "--dry-run"]));
    assert!(code == 0 && output.contains("An export of Ghost, 5 rows"), "{output}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing but the file");
}
