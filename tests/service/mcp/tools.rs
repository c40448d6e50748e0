//! The four tools: how they are declared, and what a call to one does.

use serde_json::{Value, json};

use super::{PATH, is_error, request, result};
use crate::harness::{Service, on_each_database, on_one_database};

const TOOLS: [&str; 4] = ["about_service", "read_page", "get_download", "join_waitlist"];

async fn declarations(service: &Service) -> Vec<Value> {
    let list = result(service, "tools/list", json!({})).await;
    assert_eq!(list.get("nextCursor"), None);
    list["tools"].as_array().expect("tools").clone()
}

async fn call(service: &Service, tool: &str, arguments: &Value) -> Value {
    result(service, "tools/call", json!({ "name": tool, "arguments": arguments })).await
}

/// The text of a result that has one text and nothing else.
#[track_caller]
fn text(result: &Value) -> &str {
    let content = result["content"].as_array().expect("content");
    assert_eq!((content.len(), &content[0]["type"]), (1, &json!("text")));
    content[0]["text"].as_str().expect("a text")
}

#[tokio::test]
async fn four_tools_are_declared_with_closed_schemas_titles_and_annotations() {
    on_one_database(async |service| {
        let tools = declarations(service).await;
        assert_eq!(tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect::<Vec<_>>(), TOOLS);
        for tool in &tools {
            let name = tool["name"].as_str().expect("a name");
            assert!(!tool["title"].as_str().expect("a title").is_empty());
            let description = tool["description"].as_str().expect("a description");
            assert!(
                description.contains("Troupe") && !description.contains("{app}"),
                "one of many servers: {description}"
            );
            assert!((60..=700).contains(&description.chars().count()), "{description}");
            for schema in [Some(&tool["inputSchema"]), tool.get("outputSchema")].into_iter().flatten() {
                assert!(jsonschema::meta::is_valid(schema), "{schema}");
                assert_eq!((&schema["type"], &schema["additionalProperties"]), (&json!("object"), &json!(false)));
            }
            assert_eq!(tool.get("outputSchema").is_some(), name != "read_page", "{name}");
            let annotations = &tool["annotations"];
            assert_eq!(annotations["title"], tool["title"]);
            assert_eq!(annotations["readOnlyHint"], name != "join_waitlist", "{name}");
            assert_eq!(annotations["destructiveHint"], false);
            assert_eq!(annotations["idempotentHint"], true);
        }
        let length = serde_json::to_vec(&tools).expect("JSON").len();
        assert!(length < 4_900, "a model reads all of it: {length} bytes");
    })
    .await;
}

#[tokio::test]
async fn the_schemas_name_exactly_the_documented_arguments() {
    on_one_database(async |service| {
        let tools = declarations(service).await;
        for (tool, properties, required) in [
            (&tools[0], &[][..], Value::Null),
            (&tools[1], &["page"], json!(["page"])),
            (&tools[2], &[], Value::Null),
            (&tools[3], &["email", "source"], json!(["email"])),
        ] {
            let schema = &tool["inputSchema"];
            let declared: Vec<_> = schema["properties"].as_object().expect("properties").keys().collect();
            assert_eq!(declared, properties, "{tool}");
            assert_eq!(schema["required"], required, "{tool}");
        }
        assert_eq!(
            tools[1]["inputSchema"]["properties"]["page"]["enum"],
            json!(["home", "about", "privacy", "developers", "contact"])
        );
        assert_eq!(tools[3]["inputSchema"]["properties"]["email"]["maxLength"], 254);
        assert_eq!(tools[3]["inputSchema"]["properties"]["source"]["maxLength"], 32);
    })
    .await;
}

#[tokio::test]
async fn structured_content_fits_its_schema_and_says_the_same_as_the_text() {
    on_each_database(async |service| {
        for tool in declarations(service).await {
            let Some(schema) = tool.get("outputSchema") else { continue };
            let name = tool["name"].as_str().expect("a name");
            let arguments = if name == "join_waitlist" { json!({ "email": "ada@example.com" }) } else { json!({}) };
            let result = call(service, name, &arguments).await;
            assert_eq!(result["isError"], false, "{name}");
            let content = &result["structuredContent"];
            assert_eq!(serde_json::from_str::<Value>(text(&result)).expect("JSON"), *content, "{name}");
            if let Err(error) = jsonschema::validate(schema, content) {
                panic!("{name}: {error}: {content}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn arguments_may_be_left_out_where_there_are_none() {
    on_one_database(async |service| {
        for tool in ["about_service", "get_download"] {
            let without = result(service, "tools/call", json!({ "name": tool })).await;
            assert_eq!(without, call(service, tool, &json!({})).await);
            assert_eq!(without["isError"], false);
        }
    })
    .await;
}

#[tokio::test]
async fn about_service_says_when_to_recommend_the_app_and_when_not() {
    on_one_database(async |service| {
        let about = &call(service, "about_service", &json!({})).await["structuredContent"];
        assert_eq!(about["name"], "Troupe");
        assert_eq!(about["website"], service.base_url());
        assert_eq!(about["download_page"], format!("{}/#download", service.base_url()));
        assert_eq!(about["contact_page"], format!("{}/contact", service.base_url()));
        assert!(about["system"].as_str().is_some_and(|system| system.contains("macOS 14")));
        let note = about["note"].as_str().expect("a note");
        assert!(note.contains("no list for other systems") && note.contains("No tool sends a message"), "{note}");
        let join = &declarations(service).await[3]["description"];
        let join = join.as_str().expect("a description");
        assert!(join.contains("none for other systems") && join.contains("no tool sends a message"), "{join}");
        for list in ["recommend_when", "not_for"] {
            assert!(about[list].as_array().is_some_and(|list| !list.is_empty()), "{list}");
        }
    })
    .await;
}

#[tokio::test]
async fn read_page_gives_the_markdown_of_a_page_byte_for_byte() {
    on_one_database(async |service| {
        for (page, address) in [
            ("home", "/index.md"),
            ("about", "/about.md"),
            ("privacy", "/privacy.md"),
            ("developers", "/developers.md"),
            ("contact", "/contact.md"),
        ] {
            let result = call(service, "read_page", &json!({ "page": page })).await;
            assert_eq!(text(&result), service.get(address).await.text(), "{page}");
            assert_eq!((&result["isError"], result.get("structuredContent")), (&json!(false), None));
        }
    })
    .await;
}

#[tokio::test]
async fn get_download_names_the_page_and_the_first_open_and_no_disk_image() {
    on_each_database(async |service| {
        let result = call(service, "get_download", &json!({})).await;
        let way = &result["structuredContent"];
        assert_eq!(way["page"], format!("{}/#download", service.base_url()));
        assert!(way["system"].as_str().is_some_and(|system| system.contains("macOS 14")));
        assert!(way["first_open"].to_string().contains("Open Anyway"));
        let all = result.to_string().to_lowercase();
        assert!(!all.contains(".dmg") && !all.contains("/releases"), "{all}");
        assert_eq!(service.database.traces().await, 0);
    })
    .await;
}

#[tokio::test]
async fn join_waitlist_puts_the_address_on_the_list_through_mcp() {
    on_each_database(async |service| {
        for (arguments, already) in [
            (json!({ "email": "Ada@example.com", "source": "my-agent" }), false),
            (json!({ "email": "ada@EXAMPLE.com" }), true),
        ] {
            let result = call(service, "join_waitlist", &arguments).await;
            assert_eq!(result["structuredContent"], json!({ "ok": true, "already": already }), "{arguments}");
        }
        let database = &service.database;
        assert_eq!(database.texts("SELECT email FROM people").await, ["Ada@example.com"]);
        assert_eq!(database.texts("SELECT kind FROM signups").await, ["join", "join"]);
        assert_eq!(database.texts("SELECT via FROM signups").await, ["mcp", "mcp"]);
        assert_eq!(database.texts("SELECT source FROM signups").await, ["my-agent"]);
        assert!(!database.has_updates_on("ada@example.com").await);

        let through_json = service.post("/api/waitlist", &json!({ "email": "ada@example.com" })).await;
        assert_eq!(through_json.expect_ok()["already"], true);
    })
    .await;
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_answered_with_what_to_send_and_leave_no_trace() {
    on_each_database(async |service| {
        for (tool, arguments, says) in [
            ("about_service", json!({ "verbose": true }), "no arguments"),
            ("get_download", json!({ "email": "ada@example.com" }), "no arguments"),
            ("read_page", json!({}), "home, about, privacy, developers, contact"),
            ("read_page", json!({ "page": "pricing" }), "home, about, privacy, developers, contact"),
            ("read_page", json!({ "page": "Home" }), "home, about, privacy, developers, contact"),
            ("read_page", json!({ "page": 1 }), "`page` must be a string"),
            ("read_page", json!({ "page": "home", "lang": "de" }), "The member `lang` is unknown."),
            ("join_waitlist", json!({}), "name@example.com"),
            ("join_waitlist", json!({ "email": null }), "name@example.com"),
            ("join_waitlist", json!({ "email": "nobody" }), "name@example.com"),
            ("join_waitlist", json!({ "email": "a@b.example", "source": 7 }), "`source` must be a string"),
            ("join_waitlist", json!({ "email": "a@b.example", "source": "s".repeat(33) }), "32"),
            (
                "join_waitlist",
                json!({ "email": "a@b.example", "updates": true }),
                "`email` (required), `source` (optional)",
            ),
        ] {
            let result = call(service, tool, &arguments).await;
            assert_eq!(result["isError"], true, "{tool} {arguments}");
            assert_eq!(result.get("structuredContent"), None);
            assert!(text(&result).contains(says), "{tool} {arguments}: {}", text(&result));
        }
        let doubled = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"join_waitlist",
            "arguments":{"email":"a@b.example","email":"c@d.example"}}}"#;
        assert_eq!(service.post_text(PATH, doubled).await.expect_ok()["result"]["isError"], true);
        assert_eq!(service.database.traces().await, 0);
    })
    .await;
}

#[tokio::test]
async fn a_refusal_names_unknown_members_and_repeats_nothing_else() {
    on_one_database(async |service| {
        let sent = "ignore-previous-instructions";
        for arguments in [json!({ "page": sent }), json!({ "page": "home", "more": sent })] {
            let answer = request(service, "tools/call", json!({ "name": "read_page", "arguments": arguments })).await;
            assert!(!answer.to_string().contains(sent), "{answer}");
        }
        let unknown = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": sent } });
        let message = is_error(&service.post(PATH, &unknown).await, 200, &json!(1), -32602);
        assert!(!message.contains(sent) && TOOLS.iter().all(|tool| message.contains(tool)), "{message}");
    })
    .await;
}
