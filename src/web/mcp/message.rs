//! JSON-RPC 2.0 messages: parsed and encoded. Knows nothing about methods.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::web::json::{self, Members, NotAnObject};

pub(crate) const PARSE_ERROR: i32 = -32700;
pub(crate) const INVALID_REQUEST: i32 = -32600;
pub(crate) const METHOD_NOT_FOUND: i32 = -32601;
pub(crate) const INVALID_PARAMS: i32 = -32602;
/// The client exceeded a limit.
pub(crate) const SERVER_ERROR: i32 = -32000;

#[derive(Debug)]
pub(crate) enum Message<'a> {
    Request {
        id: Id,
        method: String,
        params: Option<Members<'a>>,
    },
    /// A notification or a response. Neither gets a response.
    NotARequest,
}

/// The raw JSON of a request's id, so that the response repeats it exactly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Id(String);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RpcError {
    pub code: i32,
    pub message: Cow<'static, str>,
}

impl Id {
    pub(crate) fn unknown() -> Self {
        Self("null".to_owned())
    }

    fn read(value: &RawValue) -> Option<Self> {
        let text = value.get();
        (text.starts_with('"') || is_integer(text)).then(|| Self(text.to_owned()))
    }
}

/// Encodes a response. `result` is JSON.
pub(crate) fn success_response(Id(id): &Id, result: &str) -> String {
    [r#"{"jsonrpc":"2.0","id":"#, id, r#","result":"#, result, "}"].concat()
}

pub(crate) fn error_response(Id(id): &Id, RpcError { code, message }: &RpcError) -> String {
    let message = serde_json::Value::from(message.as_ref());
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}}}}}"#)
}

impl RpcError {
    pub(crate) fn new(code: i32, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into() }
    }
}

impl<'a> Message<'a> {
    /// An error comes with the id of the message if that could be read, else with `null`.
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self, (Id, RpcError)> {
        let members = Members::parse(body).map_err(|why| (Id::unknown(), not_an_object(why)))?;
        let id = members.get("id").and_then(Id::read);
        let response_id = id.clone().unwrap_or_else(Id::unknown);
        Self::classify(&members, id).map_err(|why| (response_id, RpcError::new(INVALID_REQUEST, why)))
    }

    /// `id` is the parsed member, `None` if it is missing or invalid.
    fn classify(members: &Members<'a>, id: Option<Id>) -> Result<Self, &'static str> {
        if members.has_duplicates() {
            return Err("Invalid Request: a member appears more than once");
        }
        if members.get("jsonrpc").and_then(json::as_string).as_deref() != Some("2.0") {
            return Err("Invalid Request: jsonrpc must be \"2.0\"");
        }
        if id.is_none() && members.get("id").is_some() {
            return Err("Invalid Request: id must be a string or an integer");
        }
        let params = match members.get("params") {
            None => None,
            Some(params) => Some(Members::of(params).ok_or("Invalid Request: params must be an object")?),
        };
        let method = match members.get("method") {
            None => None,
            Some(method) => Some(json::as_string(method).ok_or("Invalid Request: method must be a string")?),
        };
        match (id, method, members.get("result"), members.get("error")) {
            (Some(id), Some(method), None, None) => Ok(Self::Request { id, method, params }),
            (None, Some(_), None, None) => Ok(Self::NotARequest),
            (Some(_), None, Some(result), None) if result.get().starts_with('{') => Ok(Self::NotARequest),
            (Some(_), None, None, Some(error)) if is_error(error) => Ok(Self::NotARequest),
            _ => Err("Invalid Request: this is neither a request, nor a notification, nor a response"),
        }
    }
}

fn not_an_object(why: NotAnObject) -> RpcError {
    match why {
        NotAnObject::Array => {
            RpcError::new(INVALID_REQUEST, "Invalid Request: send one message per POST; batches are not supported")
        }
        NotAnObject::OtherValue => RpcError::new(INVALID_REQUEST, "Invalid Request: a message is a JSON object"),
        _ => RpcError::new(PARSE_ERROR, "Parse error: the body is not JSON"),
    }
}

fn is_error(error: &RawValue) -> bool {
    Members::of(error).is_some_and(|error| {
        error.get("code").is_some_and(|code| is_integer(code.get()))
            && error.get("message").and_then(json::as_string).is_some()
    })
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_request(body: &str) -> bool {
        matches!(Message::parse(body.as_bytes()), Ok(Message::Request { .. }))
    }

    fn is_accepted(body: &str) -> bool {
        matches!(Message::parse(body.as_bytes()), Ok(Message::NotARequest))
    }

    fn refusal(body: &str) -> (String, i32) {
        let (id, error) = Message::parse(body.as_bytes()).unwrap_err();
        (id.0, error.code)
    }

    #[test]
    fn requests_are_distinguished_from_other_messages() {
        assert!(is_request(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#));
        assert!(is_request(r#"{"jsonrpc":"2.0","id":"a","method":"x","params":{}}"#));
        assert!(is_request(r#"{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"x"}"#));
        assert!(is_accepted(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#));
        assert!(is_accepted(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
        assert!(is_accepted(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"x"}}"#));
    }

    #[test]
    fn invalid_messages_are_refused_with_their_id_if_it_is_readable() {
        for (body, id, code) in [
            ("nonsense", "null", PARSE_ERROR),
            ("", "null", PARSE_ERROR),
            ("[]", "null", INVALID_REQUEST),
            ("1", "null", INVALID_REQUEST),
            ("{}", "null", INVALID_REQUEST),
            (r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#, "7", INVALID_REQUEST),
            (r#"{"id":"a","method":"ping"}"#, "\"a\"", INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "null", INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, "null", INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, "null", INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, "1", INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#, "1", INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":2}"#, "1", INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1}"#, "1", INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","method":"x","result":{}}"#, "null", INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","result":{}}"#, "1", INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","error":{"code":1,"message":""}}"#, "1", INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","result":{}}"#, "null", INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, "1", INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":""}}"#, "1", INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":1}}"#, "1", INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"result":1}"#, "1", INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":null,"result":{}}"#, "null", INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#, "1", INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":""}}"#, "1", INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#, "1", INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, "1", INVALID_REQUEST),
        ] {
            assert_eq!(refusal(body), (id.to_owned(), code), "{body}");
        }
    }

    #[test]
    fn ids_are_repeated_as_they_were_written() {
        let body = r#"{"jsonrpc":"2.0","id":"\u0041 \"b\"","method":"ping"}"#;
        let Ok(Message::Request { id, .. }) = Message::parse(body.as_bytes()) else { panic!("no request") };
        assert_eq!(success_response(&id, "{}"), r#"{"jsonrpc":"2.0","id":"\u0041 \"b\"","result":{}}"#);
    }
}
