//! `/openapi.json`: generated from the descriptions of the endpoints.

use serde_json::{Map, Value, json};

use crate::domain::network::BaseUrl;
use crate::site::SiteFacts;
use crate::web::endpoints::{API_VERSION, Endpoint};
use crate::web::mcp::server_info;
use crate::web::problem::{ErrorCode, PROBLEM};

pub(super) const PATH: &str = "/openapi.json";

pub(super) fn document(facts: &SiteFacts, base_url: &BaseUrl, endpoints: &[Endpoint]) -> Value {
    let (waitlist, place) = if facts.waitlist { (" waitlist,", " a place on the list,") } else { ("", "") };
    let mut paths: Map<_, _> =
        endpoints.iter().map(|endpoint| (endpoint.path.to_owned(), json!({ "post": operation(endpoint) }))).collect();
    paths.insert(server_info::PATH.to_owned(), json!({ "post": mcp_operation() }));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": format!("{} website API", facts.name),
            "version": API_VERSION,
            "summary": format!("Download,{waitlist} contact and MCP."),
            "description": format!(
                "The public interface of the {} website. No keys and no accounts. Send a request only when a person \
                 asked for it, with their own address.",
                facts.name
            ),
            "contact": { "name": facts.maker, "url": base_url.to("/contact") },
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "externalDocs": { "description": "Reference with examples", "url": base_url.to("/developers") },
        "servers": [{ "url": base_url.as_str(), "description": "This site" }],
        "security": [],
        "tags": [
            { "name": "people", "description": format!("What a person asks for: the app,{place} an answer.") },
            { "name": "agents", "description": "The Model Context Protocol." },
        ],
        "paths": paths,
        "components": { "schemas": schemas(endpoints) },
    })
}

fn operation(endpoint: &Endpoint) -> Value {
    let mut responses = Map::new();
    responses.insert(
        "200".to_owned(),
        json!({
            "description": endpoint.result.description,
            "content": { "application/json": { "schema": named(endpoint.result.name) } },
        }),
    );
    for code in endpoint.error_codes() {
        let description = responses
            .get(code.status().as_str())
            .and_then(|response| response["description"].as_str())
            .map_or_else(|| format!("`{}`", code.as_str()), |others| format!("{others}, `{}`", code.as_str()));
        responses.insert(code.status().as_str().to_owned(), error_response(code, &description));
    }
    if endpoint.deprecated {
        for (_, response) in &mut responses {
            response["headers"]["Deprecation"] = header("Since when this endpoint is deprecated (RFC 9745).");
            response["headers"]["Link"] = header("What to use instead.");
        }
    }
    let mut operation = json!({
        "operationId": endpoint.operation_id,
        "summary": endpoint.summary,
        "description": endpoint.description,
        "tags": ["people"],
        "security": [],
        "requestBody": {
            "description": endpoint.request.description,
            "required": true,
            "content": {
                "application/json": {
                    "schema": named(endpoint.request.name),
                    "example": (endpoint.request_example)(),
                },
            },
        },
        "responses": responses,
    });
    if endpoint.deprecated {
        operation["deprecated"] = true.into();
    }
    operation
}

fn error_response(code: ErrorCode, description: &str) -> Value {
    let mut response = json!({
        "description": description,
        "content": { "application/problem+json": { "schema": named(PROBLEM.name) } },
    });
    response["headers"] = match code {
        ErrorCode::Unavailable => retry_after(),
        ErrorCode::MethodNotAllowed => json!({ "Allow": header("The method to use.") }),
        _ => return response,
    };
    response
}

fn mcp_operation() -> Value {
    let response = |description: &str| {
        json!({
            "description": description,
            "content": { "application/json": { "schema": named("JsonRpcResponse") } },
        })
    };
    let mut unavailable =
        response("The client exceeded a limit. A call of a tool gets a result with `isError` instead.");
    unavailable["headers"] = retry_after();
    json!({
        "operationId": "callMcp",
        "summary": "Call the MCP server",
        "description": "Takes one JSON-RPC 2.0 message of the Model Context Protocol (Streamable HTTP, stateless) \
                        and responds with JSON. Methods: initialize, ping, tools/list, tools/call.",
        "tags": ["agents"],
        "security": [],
        "parameters": [{
            "name": "MCP-Protocol-Version",
            "in": "header",
            "description": "The revision that was agreed on; sent after `initialize`.",
            "required": false,
            "schema": { "type": "string", "enum": server_info::VERSIONS },
        }],
        "requestBody": {
            "description": "One request, notification or response.",
            "required": true,
            "content": {
                "application/json": {
                    "schema": named("JsonRpcMessage"),
                    "example": { "jsonrpc": "2.0", "id": 1, "method": "tools/list" },
                },
            },
        },
        "responses": {
            "200": response("The response to a request."),
            "202": { "description": "A notification or response was accepted." },
            "400": response("Not one valid JSON-RPC message, or an unsupported protocol version."),
            "403": response("The Origin is not allowed."),
            "405": response("A method other than POST."),
            "503": unavailable,
        },
    })
}

fn schemas(endpoints: &[Endpoint]) -> Value {
    let shapes = endpoints.iter().flat_map(|endpoint| [&endpoint.request, &endpoint.result]).chain([&PROBLEM]);
    let mut schemas: Map<_, _> = shapes.map(|shape| (shape.name.to_owned(), shape.schema())).collect();
    for endpoint in endpoints {
        schemas[endpoint.request.name]["additionalProperties"] = false.into();
    }
    let code = std::mem::replace(&mut schemas[PROBLEM.name]["properties"]["code"], named("ErrorCode"));
    schemas.insert("ErrorCode".to_owned(), code);
    schemas.insert("JsonRpcMessage".to_owned(), message());
    schemas.insert("JsonRpcResponse".to_owned(), response());
    schemas.into()
}

fn message() -> Value {
    json!({
        "type": "object",
        "description": "One JSON-RPC 2.0 request, notification or response.",
        "properties": {
            "jsonrpc": { "type": "string", "const": "2.0", "description": "The version of JSON-RPC." },
            "id": { "type": ["string", "integer"], "description": "On requests and responses." },
            "method": { "type": "string", "description": "On requests and notifications." },
            "params": { "type": "object", "description": "The parameters of the method." },
        },
        "required": ["jsonrpc"],
        "anyOf": [
            {
                "description": "A request, or without `id` a notification.",
                "required": ["method"],
                "properties": { "result": false, "error": false },
            },
            {
                "description": "A response with a result.",
                "required": ["id", "result"],
                "properties": { "result": { "type": "object" }, "method": false, "error": false },
            },
            {
                "description": "A response with an error.",
                "required": ["id", "error"],
                "properties": { "error": rpc_error(), "method": false, "result": false },
            },
        ],
    })
}

fn response() -> Value {
    json!({
        "type": "object",
        "description": "The response to a JSON-RPC 2.0 request.",
        "properties": {
            "jsonrpc": { "type": "string", "const": "2.0", "description": "The version of JSON-RPC." },
            "id": { "type": ["string", "integer", "null"], "description": "The id of the request, if it could be read." },
            "result": { "type": "object", "description": "The result of the method." },
            "error": rpc_error(),
        },
        "required": ["jsonrpc"],
    })
}

fn rpc_error() -> Value {
    json!({
        "type": "object",
        "description": "What went wrong.",
        "properties": {
            "code": { "type": "integer", "description": "The kind of error." },
            "message": { "type": "string", "description": "What went wrong, for people." },
        },
        "required": ["code", "message"],
    })
}

fn named(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

fn retry_after() -> Value {
    json!({ "Retry-After": header("How many seconds to wait.") })
}

fn header(description: &str) -> Value {
    json!({ "description": description, "schema": { "type": "string" } })
}
