//! Request bodies: what is a JSON object, what is valid for an endpoint, and which check comes first.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Service, endpoints, on_each_database, raw};

const JSON: (&str, &str) = ("content-type", "application/json");
const LARGEST: usize = 64 * 1024;

/// Every endpoint refuses the body with this code.
async fn all_refuse(service: &Service, code: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) {
    for (path, _) in endpoints() {
        println!("{path} {headers:?} {}", String::from_utf8_lossy(body.as_ref()));
        service.send(Method::POST, path, headers, body.as_ref()).await.expect_problem(400, code);
    }
}

/// Every endpoint accepts its own example, sent in this way.
async fn all_take(service: &Service, headers: &[(&str, &str)], written: impl Fn(&Value) -> String) {
    for (path, example) in endpoints() {
        println!("{path} {headers:?}");
        service.send(Method::POST, path, headers, written(&example)).await.expect_ok();
    }
}

/// A JSON text of exactly so many bytes for the value.
fn padded(value: &Value, length: usize) -> String {
    let text = value.to_string();
    format!("{text}{}", " ".repeat(length - text.len()))
}

#[tokio::test]
async fn each_check_comes_before_the_next() {
    on_each_database(async |service| {
        let unknown = r#"{"email":"nobody","message":"","more":1}"#;
        let plain = ("content-type", "text/plain");
        for (path, _) in endpoints() {
            let large = padded(&json!({ "email": "nobody" }), LARGEST + 1);
            service.send(Method::PUT, path, &[plain], large.as_str()).await.expect_problem(405, "method_not_allowed");
            for (code, headers, body) in [
                ("invalid_body", plain, large.as_str()),
                ("invalid_body", JSON, &padded(&json!("no object"), LARGEST + 1)),
                ("invalid_json", plain, unknown),
                ("invalid_json", JSON, &unknown[1..]),
                ("invalid_json", JSON, &format!("{unknown},")),
                ("invalid_body", JSON, unknown),
                ("invalid_email", JSON, r#"{"email":"nobody"}"#),
            ] {
                println!("{path} {headers:?} {}", body.trim_end());
                service.send(Method::POST, path, &[headers], body).await.expect_problem(400, code);
            }
        }
        for (code, body) in [
            ("invalid_body", json!({ "email": "ada@example.com", "message": "", "more": 1 })),
            ("invalid_body", json!({ "email": "nobody", "message": "", "name": "x".repeat(101) })),
            ("invalid_body", json!({ "email": "nobody", "message": 7 })),
            ("invalid_email", json!({ "email": "nobody", "message": "" })),
            ("invalid_email", json!({ "email": "nobody", "message": "x".repeat(4001) })),
            ("empty_message", json!({ "email": "ada@example.com", "message": " ".repeat(4001) })),
        ] {
            service.post("/api/contact", &body).await.expect_problem(400, code);
        }
        assert_eq!(service.database.traces().await, 0);
    })
    .await;
}

#[tokio::test]
async fn what_is_not_one_json_object_is_invalid_json() {
    on_each_database(async |service| {
        let bodies: [&[u8]; 28] = [
            b"",
            b" \r\n",
            b"email=ada@example.com",
            b"{",
            b"{'email':'ada@example.com'}",
            b"{\"email\":\"ada@example.com\",}",
            b"{\"email\":\"ada@example.com\" // me\n}",
            b"{\"email\":\"ada@example.com",
            b"{\"email\":\"a\x01da@example.com\"}",
            b"{\"email\":\"ada@example.com\",\"source\":\"\\x41\"}",
            b"{\"email\":\"ada@example.com\",\"source\":NaN}",
            b"\xef\xbb\xbf{\"email\":\"ada@example.com\"}",
            b"\xff\xfe{\0}\0",
            b"{\"email\":\"ada@example.com\",\"source\":\"\xff\"}",
            b"{\"email\":\"ada@example.com\",\"source\":\"\xed\xa0\x80\"}",
            b"[]",
            b"[{\"email\":\"ada@example.com\"}]",
            b"7",
            b"null",
            b"true",
            b"\"ada@example.com\"",
            b"{\"email\":\"ada@example.com\"}{}",
            b"{\"email\":\"ada@example.com\"} x",
            b"{\"email\":\"ada@example.com\"}\0",
            br#"{"email":"ada@example.com","source":"\ud83c"}"#,
            br#"{"email":"ada@example.com","\udfad":"x"}"#,
            br#"{"email":"ada@example.com","source":[{"x":["\udfad\ud83c"]}]}"#,
            br#"{"email":"\ud800\u0041@example.com"}"#,
        ];
        for body in bodies {
            all_refuse(service, "invalid_json", &[JSON], body).await;
        }
        assert_eq!(service.database.traces().await, 0);
    })
    .await;
}

#[tokio::test]
async fn nesting_ends_at_127() {
    on_each_database(async |service| {
        let nested = |depth: usize| format!("{{\"more\":{}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
        all_refuse(service, "invalid_body", &[JSON], nested(127)).await;
        all_refuse(service, "invalid_json", &[JSON], nested(128)).await;
        all_refuse(service, "invalid_json", &[JSON], nested(30_000)).await;
        assert_eq!(service.database.traces().await, 0);
    })
    .await;
}

#[tokio::test]
async fn a_body_has_to_be_called_json() {
    on_each_database(async |service| {
        let example = r#"{"email":"ada@example.com","message":"Hello"}"#;
        let refused: [&[(&str, &str)]; 9] = [
            &[],
            &[("content-type", "")],
            &[("content-type", "text/plain")],
            &[("content-type", "application/x-www-form-urlencoded")],
            &[("content-type", "application/jsonp")],
            &[("content-type", "text/plain; a=application/json")],
            &[JSON, JSON],
            &[JSON, ("content-encoding", "gzip")],
            &[JSON, ("content-encoding", "identity"), ("content-encoding", "gzip")],
        ];
        for headers in refused {
            all_refuse(service, "invalid_json", headers, example).await;
        }
        let problem =
            service.send(Method::POST, "/api/contact", &[], example).await.expect_problem(400, "invalid_json");
        assert!(problem["resolution"].as_str().expect("a text").contains("application/json"), "{problem:#}");
        assert_eq!(service.database.traces().await, 0);

        let taken: [&[(&str, &str)]; 7] = [
            &[JSON],
            &[("content-type", "application/json; charset=utf-8")],
            &[("content-type", "application/json;charset=latin-1;x=\"y\"")],
            &[("content-type", "Application/JSON")],
            &[("content-type", "application/vnd.porch+json")],
            &[("content-type", "application/ld+JSON ; profile=x")],
            &[JSON, ("content-encoding", "identity")],
        ];
        for headers in taken {
            all_take(service, headers, Value::to_string).await;
        }
    })
    .await;
}

#[tokio::test]
async fn members_that_do_not_fit_are_invalid_body() {
    let text = ["null", "true", "7", "1e999", "-0.5", "123456789012345678901234567890", "[]", "[\"x\"]", "{}"];
    let flag = ["null", "0", "1", "1e999", "\"true\"", "\"\"", "[]", "[true]", "{}"];
    on_each_database(async |service| {
        for (path, member, values) in [
            ("/api/download", "updates", flag),
            ("/api/download", "source", text),
            ("/api/waitlist", "source", text),
            ("/api/contact", "name", text),
            ("/api/contact", "message", text),
        ] {
            for value in values {
                let message = if path == "/api/contact" && member != "message" { r#""message":"Hello","# } else { "" };
                let body = format!(r#"{{"email":"ada@example.com",{message}"{member}":{value}}}"#);
                println!("{path} {body}");
                let problem = service.post_text(path, &body).await.expect_problem(400, "invalid_body");
                let pointers: Vec<_> = problem["errors"].as_array().expect("faults").iter().collect();
                assert_eq!(pointers.len(), 1, "{problem:#}");
                assert_eq!(pointers[0]["pointer"], format!("#/{member}"));
            }
        }
        assert_eq!(service.database.traces().await, 0);
    })
    .await;
}

#[tokio::test]
async fn unknown_and_doubled_members_are_invalid_body() {
    on_each_database(async |service| {
        for (path, example) in endpoints() {
            let example = example.to_string();
            let with = |member: &str| format!("{{{member},{}", &example[1..]);
            for member in [
                r#""more":1"#,
                r#""":1"#,
                r#""Email":"ada@example.com""#,
                r#""email ":"ada@example.com""#,
                r#""__proto__":{}"#,
                r#""email":"ada@example.com""#,
                r#""\u0065mail":"bob@example.com""#,
                r#""email":null"#,
            ] {
                println!("{path} {}", with(member));
                service.post_text(path, &with(member)).await.expect_problem(400, "invalid_body");
            }
        }
        for (path, other) in [
            ("/api/download", "name"),
            ("/api/download", "message"),
            ("/api/waitlist", "updates"),
            ("/api/contact", "source"),
        ] {
            let body = json!({ "email": "ada@example.com", "message": "Hello", other: "x" });
            service.post(path, &body).await.expect_problem(400, "invalid_body");
        }
        assert_eq!(service.database.traces().await, 0);
    })
    .await;
}

#[tokio::test]
async fn lengths_count_code_points() {
    on_each_database(async |service| {
        for (path, member, most) in
            [("/api/download", "source", 32), ("/api/waitlist", "source", 32), ("/api/contact", "name", 100)]
        {
            let example = endpoints().into_iter().find(|(at, _)| *at == path).expect("an endpoint").1;
            for character in ["x", "é", "🎭"] {
                let mut body = example.clone();
                body[member] = character.repeat(most + 1).into();
                let problem = service.post(path, &body).await.expect_problem(400, "invalid_body");
                assert_eq!(problem["errors"][0]["pointer"], format!("#/{member}"));
            }
        }
        assert_eq!(service.database.traces().await, 0);

        let (source, name) = ("🎭".repeat(32), "🎭".repeat(100));
        for path in ["/api/download", "/api/waitlist"] {
            service.post(path, &json!({ "email": "ada@example.com", "source": source })).await.expect_ok();
        }
        service.post("/api/contact", &json!({ "email": "a@b.co", "name": name, "message": "Hi" })).await.expect_ok();
        assert_eq!(service.database.texts("SELECT source FROM signups").await, [source.clone(), source]);
        assert_eq!(service.database.texts("SELECT name FROM messages").await, [name]);
    })
    .await;
}

#[tokio::test]
async fn a_body_has_64_kib_at_most_however_it_is_sent() {
    on_each_database(async |service| {
        let send = async |path: &str, length: &str, body: &str| {
            let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{length}");
            raw(service.address(), format!("{head}\r\nContent-Type: application/json\r\n\r\n{body}")).await
        };
        let send_chunked = async |path: &str, body: &str| {
            let mut chunks = String::new();
            for chunk in body.as_bytes().chunks(10_000) {
                let size = format!("{:x}\r\n", chunk.len());
                chunks.extend([&size, &*String::from_utf8_lossy(chunk), "\r\n"]);
            }
            send(path, "Transfer-Encoding: chunked", &format!("{chunks}0\r\n\r\n")).await
        };
        for (path, example) in endpoints() {
            let too_large = padded(&example, LARGEST + 1);
            service.post_text(path, &too_large).await.expect_problem(400, "invalid_body");
            let announced = send(path, "Content-Length: 99999999999", "{").await;
            for answer in [send_chunked(path, &too_large).await, announced] {
                assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("\"invalid_body\""), "{answer}");
            }
        }
        assert_eq!(service.database.traces().await, 0);

        all_take(service, &[JSON], |example| padded(example, LARGEST)).await;
        for (path, example) in endpoints() {
            let answer = send_chunked(path, &padded(&example, LARGEST)).await;
            assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        }
    })
    .await;
}

#[tokio::test]
async fn only_names_of_unknown_members_are_repeated() {
    on_each_database(async |service| {
        let secret = "hunter2";
        for (path, _) in endpoints() {
            for body in [
                secret.to_owned(),
                format!("{{\"more\": \"{secret}\"}}"),
                format!(r#"{{"email": "{secret}"}}"#),
                format!(r#"{{"email": "{secret}@{secret}.com", "more": "{secret}"}}"#),
                format!(r#"{{"email": ["{secret}"], "source": ["{secret}"], "name": {{"{secret}": 1}}}}"#),
                format!(r#"{{"email": "a@b.co", "source": "{0}", "name": "{0}"}}"#, secret.repeat(100)),
                format!(r#"{{"email": "a@b.co", "message": "{}"}}"#, secret.repeat(1000)),
            ] {
                let path = format!("{path}?{secret}");
                let headers = [("content-type", "application/json; x=hunter2"), ("x-hunter2", secret)];
                let answer = service.send(Method::POST, &path, &headers, body).await;
                assert_eq!(answer.status, 400);
                assert!(!format!("{:?} {}", answer.headers, answer.text()).contains(secret), "{}", answer.text());
            }
        }
        assert_eq!(service.database.traces().await, 0);
    })
    .await;
}

#[tokio::test]
async fn a_nul_is_stored_as_the_replacement_character() {
    on_each_database(async |service| {
        service.post("/api/download", &json!({ "email": "a@b.co", "source": "a\0b" })).await.expect_ok();
        service.post("/api/contact", &json!({ "email": "a@b.co", "name": "\0", "message": "a\0\0" })).await.expect_ok();
        assert_eq!(service.database.texts("SELECT source FROM signups").await, ["a\u{fffd}b"]);
        assert_eq!(service.database.texts("SELECT name FROM messages").await, ["\u{fffd}"]);
        assert_eq!(service.database.texts("SELECT body FROM messages").await, ["a\u{fffd}\u{fffd}"]);

        service.post("/api/download", &json!({ "email": "a\0@b.co" })).await.expect_problem(400, "invalid_email");
    })
    .await;
}
