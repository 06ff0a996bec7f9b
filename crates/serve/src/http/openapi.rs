//! The description of the API, of OpenAPI 3.1, made from the table of routes.

use serde_json::{Map, Value, json};

use super::{Answer, Param, Route};
use crate::{Limits, ROUTES, docs::LINES, login, problem::Problem};

/// All of it.
pub(crate) fn description() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_lowercase()] = operation(route);
    }
    let mut login = login::operation();
    for (_, status, _) in Problem::KINDS {
        login["post"]["responses"][status.as_u16().to_string()] =
            json!({ "$ref": "#/components/responses/Problem" });
    }
    paths.insert(login::PATH.to_owned(), login);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "steelyard",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Documents of one tenant, which is that of the key.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "security": [{ "key": [] }],
        "components": {
            "securitySchemes": {
                "key": { "type": "http", "scheme": "bearer", "description": "An API key, prefix.secret, or the token of a login" },
            },
            "responses": { "Problem": problem() },
            "schemas": schemas(),
        },
    })
}

fn operation(route: &Route) -> Value {
    let in_path = route.in_path().map(|name| {
        let schema = match name {
            "collection" => {
                json!({ "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$" })
            }
            // In bytes there may be 512, which no schema can say.
            _ => json!({
                "type": "string", "minLength": 1, "maxLength": 512,
                "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f\\\\]+$",
                "not": { "enum": [".", "..", "%2e", "%2E", ".%2e", ".%2E", "%2e.", "%2E."] },
            }),
        };
        json!({ "name": name, "in": "path", "required": true, "schema": schema })
    });
    let parameters: Vec<Value> = in_path.chain(route.params.iter().map(parameter)).collect();
    let mut operation = json!({
        "operationId": route.name,
        "summary": route.about,
        "parameters": parameters,
        "responses": responses(route.answers),
    });
    if let Some(sent) = &route.sent {
        operation["requestBody"] =
            json!({ "required": !sent.may_be_empty, "content": content(sent.media, sent.schema) });
    }
    operation
}

fn parameter(param: &Param) -> Value {
    let mut schema = json!({ "type": param.kind });
    if param.kind == "integer" {
        schema["minimum"] = json!(1);
        schema["maximum"] = json!(Limits::default().page_documents);
    }
    if let Some(pattern) = param.pattern {
        schema["pattern"] = json!(pattern);
    }
    json!({
        "name": param.name, "in": param.place, "required": false,
        "description": param.about, "schema": schema,
    })
}

fn responses(answers: &[Answer]) -> Value {
    let mut all: Map<String, Value> = Map::new();
    for answer in answers {
        let mut response = json!({ "description": answer.about });
        if let Some(schema) = answer.schema {
            response["content"] = content(answer.media, schema);
        }
        all.insert(answer.status.to_string(), response);
    }
    for (_, status, _) in Problem::KINDS {
        let status = status.as_u16().to_string();
        all.entry(status).or_insert_with(|| json!({ "$ref": "#/components/responses/Problem" }));
    }
    Value::Object(all)
}

fn content(media: &[&str], schema: &str) -> Value {
    let each = media.iter().map(|media| {
        let reference = json!({ "$ref": format!("#/components/schemas/{schema}") });
        // Of lines it is a line that has a schema, and its own status. What is no JSON has none.
        let described = match *media {
            LINES => json!({ "x-item-schema": reference }),
            media if media.ends_with("json") => json!({ "schema": reference }),
            _ => json!({}),
        };
        ((*media).to_owned(), described)
    });
    Value::Object(each.collect())
}

fn problem() -> Value {
    let kinds: Vec<String> =
        Problem::KINDS.iter().map(|(name, ..)| format!("urn:steelyard:problem:{name}")).collect();
    json!({
        "description": "Why it was not done (RFC 9457).",
        "content": { "application/problem+json": { "schema": {
            "type": "object",
            "required": ["type", "title", "status", "detail"],
            "properties": {
                "type": { "enum": kinds },
                "title": { "type": "string" },
                "status": { "type": "integer" },
                "detail": { "type": "string" },
            },
        } } },
    })
}

fn schemas() -> Value {
    let text = json!({ "type": "string" });
    let document = json!({ "$ref": "#/components/schemas/Document" });
    let count = json!({ "type": "integer", "minimum": 0 });
    json!({
        "Document": { "type": "object", "additionalProperties": true },
        "Item": {
            "type": "object", "required": ["id", "doc"],
            "properties": { "id": text, "rev": text, "doc": document },
        },
        "Page": {
            "type": "object", "required": ["items", "next"],
            "properties": {
                "items": { "type": "array", "items": { "$ref": "#/components/schemas/Item" } },
                "next": { "type": ["string", "null"], "description": "The cursor of the next page." },
            },
        },
        "Query": {
            "type": "object", "additionalProperties": false,
            "properties": {
                "where": { "type": ["string", "object"] }, "sort": text, "fields": text,
                "limit": { "type": "integer", "minimum": 1, "maximum": Limits::default().page_documents }, "cursor": { "type": ["string", "null"] },
            },
        },
        "Change": {
            "type": "object", "required": ["id"], "additionalProperties": false,
            "properties": {
                "id": text, "rev": { "type": ["string", "null"] }, "doc": document, "delete": { "const": true },
            },
        },
        "Changed": {
            "type": "object", "required": ["id", "status"],
            "properties": {
                "id": { "type": ["string", "null"] }, "status": { "type": "integer" }, "rev": text,
                "problem": { "type": "object" },
            },
        },
        "Collections": {
            "type": "object", "required": ["collections"],
            "properties": { "collections": { "type": "array", "items": text } },
        },
        "Count": { "type": "object", "required": ["count"], "properties": { "count": count } },
    })
}
