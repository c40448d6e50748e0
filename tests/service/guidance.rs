//! Errors carry a program from a wrong request to the right one, by what the response says alone.

use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::harness::{Answer, Service, on_each_database, on_one_database};

/// A program that knows what its person wants to say, and nothing about the interface but an address to start from.
struct Caller {
    method: Method,
    path: String,
    content_type: Option<String>,
    /// As text, so that it can be something else than an object.
    body: String,
    /// What the person wants to send, by what it is.
    wishes: BTreeMap<&'static str, Value>,
}

impl Caller {
    fn new(path: &str, body: impl Into<String>) -> Self {
        let wishes = BTreeMap::from([
            ("email", json!("ada@example.com")),
            ("message", json!("Does it run on macOS 15?")),
            ("source", json!("my-agent")),
        ]);
        let json = Some("application/json".to_owned());
        Self { method: Method::POST, path: path.to_owned(), content_type: json, body: body.into(), wishes }
    }

    async fn send(&self, service: &Service) -> Answer {
        let headers: Vec<_> = self.content_type.iter().map(|value| ("content-type", value.as_str())).collect();
        service.send(self.method.clone(), &self.path, &headers, self.body.clone()).await
    }

    /// Sends the request, and changes it as the responses say until it is accepted. Returns how often it was sent.
    async fn succeed(mut self, service: &Service) -> usize {
        for attempt in 1..=4 {
            let answer = self.send(service).await;
            if answer.status == 200 {
                return attempt;
            }
            self.follow(&answer);
        }
        panic!("not accepted: {} {} {}", self.method, self.path, self.body)
    }

    fn follow(&mut self, answer: &Answer) {
        let problem = answer.json();
        let resolution = problem["resolution"].as_str().expect("a resolution");
        match problem["code"].as_str().expect("a code") {
            "not_found" => self.path = nearest_path(resolution, &self.path),
            "method_not_allowed" => self.method = answer.header("allow").parse().expect("a method"),
            "invalid_json" => {
                let (_, header) = resolution.split_once("Content-Type: ").expect("what to send");
                self.content_type = Some(header.trim_end_matches('.').to_owned());
                self.rebuild();
            }
            "invalid_body" if problem.get("errors").is_none() => {
                assert!(problem["detail"].as_str().expect("a detail").contains("64 KiB"), "{problem:#}");
                self.rebuild();
            }
            _ => self.repair(&problem, resolution),
        }
    }

    /// Makes the body anew of what the person wants. What an endpoint does not take, its next answer names.
    fn rebuild(&mut self) {
        self.body = json!({ "email": self.wishes["email"], "message": self.wishes["message"] }).to_string();
    }

    /// Corrects the members that `errors` names.
    fn repair(&mut self, problem: &Value, resolution: &str) {
        let mut body: Map<String, Value> = serde_json::from_str(&self.body).expect("an object");
        for error in problem["errors"].as_array().expect("errors") {
            let name = error["pointer"].as_str().expect("a pointer").trim_start_matches("#/").to_owned();
            let detail = error["detail"].as_str().expect("a detail");
            let limit = detail.split_once("at most ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
            if detail.contains("is unknown") {
                body.remove(&name);
            } else if detail.contains("must be true or false") {
                body.insert(name, json!(false));
            } else if let Some(limit) = limit {
                let text = body[&name].as_str().expect("a text").chars().take(limit).collect();
                body.insert(name, Value::String(text));
            } else {
                assert!(
                    ["must be a string", "is missing", "more than once", "fewer than 2 characters"]
                        .iter()
                        .any(|known| detail.contains(known)),
                    "{detail} ({resolution})"
                );
                let wish = self.wishes[name.as_str()].clone();
                body.insert(name, wish);
            }
        }
        self.body = Value::Object(body).to_string();
    }
}

/// The listed path that begins most like the one that was tried.
fn nearest_path(resolution: &str, tried: &str) -> String {
    let common = |path: &str| path.bytes().zip(tried.bytes()).take_while(|(a, b)| a == b).count();
    let paths =
        resolution.split(|c: char| c.is_whitespace() || ",;".contains(c)).filter(|word| word.starts_with("/api/"));
    paths.map(|path| path.trim_end_matches('.')).max_by_key(|path| common(path)).expect("a path").to_owned()
}

#[tokio::test]
async fn from_a_single_wrong_request_a_program_finds_the_right_one_by_the_answer_alone() {
    on_each_database(async |service| {
        let email = "\"email\":\"ada@example.com\"";
        let wrong_json = ["", "[]", "nonsense", "{", "\"ada@example.com\""];
        for (path, message) in
            [("/api/download", ""), ("/api/waitlist", ""), ("/api/contact", ",\"message\":\"Hello\"")]
        {
            let right = format!("{{{email}{message}}}");
            let mut callers = vec![
                Caller { method: Method::GET, ..Caller::new(path, right.clone()) },
                Caller { method: Method::PUT, ..Caller::new(path, right.clone()) },
                Caller { content_type: None, ..Caller::new(path, right.clone()) },
                Caller { content_type: Some("text/plain".to_owned()), ..Caller::new(path, right.clone()) },
                Caller::new(&format!("{path}s"), right.clone()),
                Caller::new(path, right.replace('}', ",\"nickname\":1,\"plan\":\"pro\"}")),
                Caller::new(path, right.replace('}', &format!(",{email}}}"))),
                Caller::new(path, right.replace("\"ada@example.com\"", "7")),
                Caller::new(path, right.replace(email, "\"mail\":\"ada@example.com\"")),
                Caller::new(path, format!("{{{email}{message},\"x\":\"{}\"}}", "x".repeat(70_000))),
            ];
            callers.extend(wrong_json.map(|body| Caller::new(path, body)));
            if path == "/api/contact" {
                for wrong in ["7", "null", "\"\"", "\" \"", &format!("\"{}\"", "x".repeat(4001))] {
                    callers.push(Caller::new(path, right.replace("\"Hello\"", wrong)));
                }
                callers.push(Caller::new(path, format!("{{{email}}}")));
                callers.push(Caller::new(path, right.replace('}', &format!(",\"name\":\"{}\"}}", "x".repeat(101)))));
            } else {
                for wrong in ["7", "null", &format!("\"{}\"", "x".repeat(33))] {
                    callers.push(Caller::new(path, right.replace('}', &format!(",\"source\":{wrong}}}"))));
                }
            }
            if path == "/api/download" {
                callers.push(Caller::new(path, right.replace('}', ",\"updates\":\"no\"}")));
            }
            for caller in callers {
                let (method, start) = (caller.method.clone(), caller.body.chars().take(80).collect::<String>());
                let attempts = caller.succeed(service).await;
                assert!((2..=3).contains(&attempts), "{attempts} attempts from {method} {path} {start}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn for_a_wrong_address_the_answer_names_the_broken_rule_and_says_to_ask_the_person() {
    on_one_database(async |service| {
        for (address, rule) in [
            (" ada@example.com", "space"),
            ("ada@example.com ", "space"),
            ("ada", "@"),
            ("ada@b@example.com", "@"),
            ("@example.com", "before the @"),
            ("ada@", "after the @"),
            ("jos\u{e9}@example.com", "\u{e9}"),
            ("a b@example.com", "space"),
            ("ada..b@example.com", "dot"),
            (".ada@example.com", "dot"),
            ("ada@localhost", "domain name"),
            (&format!("{}@example.com", "a".repeat(65)), "64"),
            (&format!("a@{}.example", "b".repeat(254)), "254"),
        ] {
            for path in ["/api/download", "/api/waitlist", "/api/contact"] {
                let body = json!({ "email": address, "message": "Hello" });
                let body = if path == "/api/contact" { body } else { json!({ "email": address }) };
                let problem = service.post(path, &body).await.expect_problem(400, "invalid_email");
                let detail = problem["errors"][0]["detail"].as_str().expect("a detail");
                assert!(detail.contains(rule), "{address}: {detail}");
                assert!(
                    problem["resolution"].as_str().expect("a resolution").contains("Ask the person"),
                    "{problem:#}"
                );
                assert!(!problem.to_string().contains("example.com\","), "an address is not repeated: {problem:#}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_tool_and_a_form_say_the_same_words_as_the_endpoint() {
    on_one_database(async |service| {
        for body in [
            json!({}),
            json!({ "email": "jos\u{e9}@example.com" }),
            json!({ "email": "ada@example.com", "nickname": "x" }),
            json!({ "email": 7, "source": "x".repeat(33) }),
        ] {
            let problem = service.post("/api/waitlist", &body).await.json();
            let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": { "name": "join_waitlist", "arguments": body } });
            let result = service.post("/mcp", &call).await.json()["result"].clone();
            assert_eq!(result["isError"], true);
            let text = result["content"][0]["text"].as_str().expect("a text");
            for error in problem["errors"].as_array().expect("errors") {
                assert!(text.contains(error["detail"].as_str().expect("a detail")), "{text}");
            }
            assert!(text.ends_with(problem["resolution"].as_str().expect("a resolution")), "{text}");
        }
        let problem = service.post("/api/download", &json!({ "email": "ada@localhost" })).await.json();
        let form = [("content-type", "application/x-www-form-urlencoded")];
        let page = service.send(Method::POST, "/download", &form, "email=ada%40localhost").await;
        assert_eq!(page.status, 400);
        let detail = problem["detail"].as_str().expect("a detail");
        assert!(page.text().contains(detail), "{detail}");
    })
    .await;
}
