//! Problem documents: their members, the methods and paths that lead to them, and what every response under
//! `/api/` has in common.

use std::collections::BTreeMap;

use porchlight::config::RawSettings;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{
    Answer, Service, endpoints, on_each_database, on_each_database_with, on_one_database, on_one_database_with, raw,
};

const BASE_URL: &str = "https://troupe.example";

/// Not a preview, so there is no image to download and the endpoint is unavailable.
fn public() -> RawSettings {
    RawSettings { base_url: Some(BASE_URL.to_owned()), ..RawSettings::default() }
}

/// Every problem that a client can cause, some in several ways, and the path of the request.
async fn problems(service: &Service) -> Vec<(&'static str, u16, &'static str, Answer)> {
    let mut problems = Vec::new();
    for (path, _) in endpoints() {
        problems.push(("invalid_json", 400, path, service.post_text(path, "").await));
        problems.push(("invalid_json", 400, path, service.post_text(path, "[]").await));
        problems.push(("invalid_json", 400, path, service.send(Method::POST, path, &[], "{}").await));
        problems.push(("invalid_body", 400, path, service.post(path, &json!({ "more": 1 })).await));
        problems.push(("invalid_body", 400, path, service.post_text(path, &" ".repeat(70_000)).await));
        problems.push(("invalid_email", 400, path, service.post(path, &json!({})).await));
        problems.push(("invalid_email", 400, path, service.post(path, &json!({ "email": "nobody" })).await));
        problems.push(("method_not_allowed", 405, path, service.get(path).await));
    }
    for (code, message) in [("empty_message", " ".to_owned()), ("message_too_long", "x".repeat(4001))] {
        let body = json!({ "email": "ada@example.com", "message": message });
        problems.push((code, 400, "/api/contact", service.post("/api/contact", &body).await));
    }
    problems.push(("not_found", 404, "/api/nothing", service.get("/api/nothing").await));
    let (path, example) = &endpoints()[0];
    problems.push(("unavailable", 503, path, service.post(path, example).await));
    problems
}

#[tokio::test]
async fn a_problem_has_every_member_that_is_documented() {
    on_each_database_with(public(), async |service| {
        let mut titles = BTreeMap::new();
        let mut details = BTreeMap::<_, Vec<String>>::new();
        for (code, status, path, answer) in problems(service).await {
            let problem = answer.expect_problem(status, code);
            let text = |member: &str| problem[member].as_str().unwrap_or_default().to_owned();
            assert_eq!(text("type"), format!("{BASE_URL}/developers#errors-{}", code.replace('_', "-")));
            assert_eq!(text("documentation_url"), format!("{BASE_URL}/developers#errors"));
            assert_eq!(text("instance"), path);
            assert_eq!(answer.header("content-language"), "en");
            for member in ["title", "detail", "resolution"] {
                assert!(!text(member).is_empty(), "{member} of {problem:#}");
            }
            assert_eq!(*titles.entry(code).or_insert(text("title")), text("title"), "the title of {code} is constant");
            details.entry(code).or_default().push(text("detail"));
        }
        assert_eq!(titles.len(), 8, "all codes but server_error, which no caller can bring about");
        for code in ["invalid_json", "invalid_body", "invalid_email"] {
            let details = &details[code];
            assert!(details.iter().any(|detail| *detail != details[0]), "{code} tells what was wrong this time");
        }
        assert_eq!(service.database.traces().await, 0);
    })
    .await;
}

#[tokio::test]
async fn a_problem_points_to_each_member_at_fault() {
    on_one_database(async |service| {
        let pointers = |problem: &Value| {
            let faults = problem["errors"].as_array().expect("faults").iter();
            faults.map(|fault| fault["pointer"].as_str().expect("a text").to_owned()).collect::<Vec<_>>()
        };
        let body = json!({ "email": 1, "name": 2, "message": 3, "more": 4, "a/b ~é%": 5 });
        let problem = service.post("/api/contact", &body).await.expect_problem(400, "invalid_body");
        assert_eq!(pointers(&problem), ["#/more", "#/a~1b%20~0%C3%A9%25", "#/name", "#/message", "#/email"]);
        let text = |member: &str| problem[member].as_str().expect("a text");
        assert!(text("detail").starts_with(problem["errors"][0]["detail"].as_str().expect("a text")), "{problem:#}");
        for member in ["`name` (optional)", "`email` (required)", "`message` (required)", "the person's own address"] {
            assert!(text("resolution").contains(member), "{problem:#}");
        }

        let body = json!({ "email": "ada", "message": " " });
        let problem = service.post("/api/contact", &body).await.expect_problem(400, "invalid_email");
        assert_eq!(pointers(&problem), ["#/email", "#/message"]);
        assert!(
            problem["errors"][1]["detail"].as_str().is_some_and(|detail| detail.contains("fewer than 2 characters"))
        );

        let many: serde_json::Map<_, _> = (0..20).map(|number| (format!("{number:02}\u{202e}"), json!(1))).collect();
        let problem = service.post("/api/download", &many.into()).await.expect_problem(400, "invalid_body");
        let pointers = pointers(&problem);
        assert_eq!((pointers.len(), pointers[7].as_str(), pointers[8].as_str()), (10, "#/07%EF%BF%BD", "#"));
        assert!(problem["errors"][8]["detail"].as_str().is_some_and(|detail| detail.starts_with("12 more members")));

        let problem = service.post_text("/api/contact", "").await.expect_problem(400, "invalid_json");
        assert_eq!(problem.get("errors"), None, "no single member is at fault");
    })
    .await;
}

#[tokio::test]
async fn only_an_address_that_was_given_and_is_wrong_is_to_be_asked_for() {
    on_one_database(async |service| {
        for (body, detail, asks) in [
            (json!({}), "The email address is missing.", false),
            (json!({ "email": "" }), "The email address is missing.", false),
            (json!({ "email": null }), "The email address must be a string.", false),
            (json!({ "email": ["ada@example.com"] }), "The email address must be a string.", false),
            (json!({ "email": "nobody" }), "it needs exactly one @", true),
            (json!({ "email": " ada@example.com" }), "a space or a line break", true),
        ] {
            let problem = service.post("/api/waitlist", &body).await.expect_problem(400, "invalid_email");
            let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": { "name": "join_waitlist", "arguments": body } });
            let result = service.post("/mcp", &call).await.expect_ok();
            let told = result["result"]["content"][0]["text"].as_str().expect("a text");
            for text in [format!("{} {}", problem["detail"], problem["resolution"]), told.to_owned()] {
                assert!(text.contains(detail) && text.contains("name@example.com"), "{body}: {text}");
                assert_eq!(text.contains("Ask the person"), asks, "{body}: {text}");
            }
        }
        for (body, detail) in [
            (json!({ "email": "ada@example.com" }), "The message is missing."),
            (json!({ "email": "ada@example.com", "message": "" }), "The message is missing."),
            (json!({ "email": "ada@example.com", "message": " " }), "The message has fewer than 2 characters."),
        ] {
            let problem = service.post("/api/contact", &body).await.expect_problem(400, "empty_message");
            assert_eq!(problem["detail"], detail, "{body}");
        }
    })
    .await;
}

#[tokio::test]
async fn an_error_is_short_whatever_was_sent() {
    on_one_database_with(public(), async |service| {
        let long = format!("/api/{}", "%22".repeat(5000));
        let problem = service.get(&long).await;
        assert_eq!(problem.expect_problem(404, "not_found")["instance"], long[..200]);
        let many = (0..6000).map(|number| format!("\"{number}\":1")).collect::<Vec<_>>().join(",");
        let wrong = json!({ "email": [], "name": "\u{1}".repeat(20_000), "message": 1, "updates": 1, "source": 1 });
        let mut answers = vec![problem];
        for (path, _) in endpoints() {
            answers.push(service.post_text(path, &format!("{{{many}}}")).await);
            answers.push(service.post(path, &wrong).await);
            for character in ["\"", "/", "é", "🎭", "x"] {
                let mut wrong = wrong.clone();
                wrong
                    .as_object_mut()
                    .expect("members")
                    .extend((0..9).map(|number| (format!("{number}{}", character.repeat(70)), json!(1))));
                answers.push(service.post(path, &wrong).await);
            }
            answers.push(service.post_text(path, &format!("{{\"{}\":1}}", "x".repeat(60_000))).await);
            answers.push(service.post(path, &json!({ "email": "ä".repeat(20_000) })).await);
        }
        for answer in answers {
            assert!(answer.status.is_client_error() && answer.body.len() < 4096, "{}", answer.text());
        }
    })
    .await;
}

#[tokio::test]
async fn a_path_is_repeated_without_control_and_direction_characters() {
    on_one_database(async |service| {
        let request = "GET /api/\u{202e}x\u{85}y HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        let answer = raw(service.address(), request).await;
        assert!(answer.contains("\"instance\": \"/api/\u{fffd}x\u{fffd}y\""), "{answer}");
    })
    .await;
}

#[tokio::test]
async fn every_problem_leads_to_its_place_on_the_developers_page() {
    on_one_database_with(public(), async |service| {
        let page = service.get("/developers").await.text();
        for (code, _, _, answer) in problems(service).await {
            for member in ["type", "documentation_url"] {
                let problem = answer.json();
                let (at, anchor) = problem[member].as_str().and_then(|url| url.split_once('#')).expect("an anchor");
                assert_eq!(at, format!("{BASE_URL}/developers"));
                assert!(page.contains(&format!("id=\"{anchor}\"")), "{anchor} of {code}");
            }
        }
        assert!(page.contains("id=\"errors-server-error\""));
    })
    .await;
}

#[tokio::test]
async fn a_problem_is_sent_whatever_is_accepted() {
    on_one_database(async |service| {
        for accept in ["text/html", "text/markdown", "application/json", "application/problem+json;q=0", "*/*;q=0", "?"]
        {
            let headers = [("accept", accept), ("content-type", "application/json")];
            service.send(Method::POST, "/api/download", &headers, "").await.expect_problem(400, "invalid_json");
            service.get_as("/api/download", accept).await.expect_problem(405, "method_not_allowed");
            service.get_as("/api/nothing", accept).await.expect_problem(404, "not_found");
        }
    })
    .await;
}

#[tokio::test]
async fn a_problem_says_what_the_settings_say_and_never_the_host_header() {
    on_one_database_with(public(), async |service| {
        for request in [
            "POST /api/download HTTP/1.1\r\nHost: evil.example",
            "GET http://evil.example/api/waitlist HTTP/1.1\r\nHost: evil.example",
            "GET /api/nothing HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: evil.example",
        ] {
            let answer = raw(service.address(), format!("{request}\r\nConnection: close\r\n\r\n")).await;
            assert!(answer.contains(&format!("\"{BASE_URL}/developers#errors-")), "{answer}");
            assert!(!answer.contains("evil.example"), "{answer}");
        }
    })
    .await;
}

#[tokio::test]
async fn nothing_under_api_is_stored_by_caches_sets_cookies_or_is_open_to_other_sites() {
    let written = RawSettings { allowed_origins: Some("https://friend.example".to_owned()), ..RawSettings::default() };
    on_one_database_with(written, async |service| {
        let mut answers: Vec<_> = problems(service).await.into_iter().map(|(.., answer)| answer).collect();
        for (path, example) in endpoints() {
            for origin in [service.base_url(), "https://friend.example", "https://evil.example", "null"] {
                let headers = [("content-type", "application/json"), ("origin", origin)];
                answers.push(service.send(Method::POST, path, &headers, example.to_string()).await);
                let preflight = [("origin", origin), ("access-control-request-method", "POST")];
                answers.push(service.send(Method::OPTIONS, path, &preflight, "").await);
            }
        }
        for answer in answers {
            assert_eq!(answer.header("cache-control"), "no-store", "{}", answer.text());
            for (name, _) in &answer.headers {
                assert!(!name.as_str().starts_with("access-control-") && name != "set-cookie", "{name}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn every_method_but_post_is_refused_with_the_one_to_use() {
    on_each_database(async |service| {
        for (path, example) in endpoints() {
            for method in ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "post", "X"] {
                let named = Method::from_bytes(method.as_bytes()).expect("a method");
                let overridden = [("content-type", "application/json"), ("x-http-method-override", "POST")];
                for answer in [
                    service.send(named.clone(), path, &[], "").await,
                    service.send(named.clone(), path, &overridden, example.to_string()).await,
                ] {
                    println!("{method} {path}");
                    assert_eq!(answer.header("allow"), "POST");
                    assert_eq!(answer.header("cache-control"), "no-store");
                    if method == "HEAD" {
                        assert_eq!((answer.status.as_u16(), answer.body.len()), (405, 0));
                    } else {
                        answer.expect_problem(405, "method_not_allowed");
                    }
                }
            }
            let connect = format!("CONNECT {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
            let answer = raw(service.address(), connect).await;
            assert!(answer.starts_with("HTTP/1.1 405 ") && answer.contains("\r\nallow: POST\r\n"), "{answer}");
        }
        assert_eq!(service.database.traces().await, 0);
    })
    .await;
}

#[tokio::test]
async fn unknown_addresses_under_api_are_problems_for_every_method() {
    on_each_database(async |service| {
        for path in [
            "/api/",
            "/api/nothing",
            "/api/x/y",
            "/api/download/",
            "/api/Download",
            "/api//download",
            "/api/%64ownload",
            "/api/waitlist%2F",
            "/api/x%2Fy",
            "/api/%00",
            "/api/openapi.json",
        ] {
            for method in [Method::GET, Method::POST, Method::DELETE, Method::OPTIONS, Method::TRACE] {
                let body = json!({ "email": "ada@example.com", "message": "Hello" }).to_string();
                let answer = service.send(method.clone(), path, &[("content-type", "application/json")], body).await;
                let problem = answer.expect_problem(404, "not_found");
                assert_eq!(problem["instance"], path, "{method}");
                assert_eq!(answer.header("allow"), "");
            }
            assert_eq!(service.send(Method::HEAD, path, &[], "").await.status, 404, "HEAD {path}");
        }
        assert_eq!(service.database.traces().await, 0);
    })
    .await;
}

#[tokio::test]
async fn a_path_not_under_api_as_sent_is_an_ordinary_unknown_page() {
    on_one_database(async |service| {
        for path in ["/api%2fwaitlist", "/api%2F", "/api", "/apiary", "/API/download", "/%61pi/download"] {
            for method in [Method::GET, Method::POST] {
                let answer = service.send(method, path, &[("content-type", "application/json")], "{}").await;
                assert_eq!(answer.status, 404, "{path}");
                assert_eq!(answer.header("content-type"), "text/html; charset=utf-8", "{path}");
            }
        }
        assert_eq!(service.database.traces().await, 0);
    })
    .await;
}

/// Asserts that the document describes this response: status, media type, body and headers.
fn is_documented(document: &Value, path: &str, answer: &Answer) {
    let status = answer.status.as_str();
    let response = &document["paths"][path]["post"]["responses"][status];
    let schema = &response["content"][answer.header("content-type")]["schema"];
    assert!(schema.is_object(), "{status} of {path} is not documented as {}", answer.header("content-type"));
    let schema = json!({ "allOf": [schema], "components": document["components"] });
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).expect("a schema");
    let faults: Vec<_> = validator.iter_errors(&answer.json()).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{status} of {path}: {faults:?}\n{}", answer.text());
    for name in response["headers"].as_object().into_iter().flat_map(|headers| headers.keys()) {
        assert!(answer.headers.contains_key(name), "{status} of {path} has no {name}");
    }
}

#[tokio::test]
async fn every_answer_is_as_the_openapi_document_has_it() {
    on_each_database_with(public(), async |service| {
        let document = service.get("/openapi.json").await.json();
        for (code, _, path, answer) in problems(service).await {
            // The document describes existing paths only.
            if code != "not_found" {
                is_documented(&document, path, &answer);
            }
        }
        for (path, example) in &endpoints()[1..] {
            let answer = service.post(path, example).await;
            answer.expect_ok();
            is_documented(&document, path, &answer);
        }
    })
    .await;
    on_one_database(async |preview| {
        let document = preview.get("/openapi.json").await.json();
        for (path, example) in endpoints() {
            let answer = preview.post(path, &example).await;
            answer.expect_ok();
            is_documented(&document, path, &answer);
        }
    })
    .await;
}
