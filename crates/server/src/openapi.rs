//! The OpenAPI document, made from the table of routes so that it cannot say anything else.

use serde_json::Value;
use serde_json::json;

use crate::reply::Reply;
use crate::routes::OTLP_ROUTES;
use crate::routes::Parameter;
use crate::routes::ROUTES;
use crate::routes::Route;

/// Every status that stands for an error, with what it means here.
const ERRORS: [(&str, &str); 13] = [
    ("400", "a parameter or the body does not make sense"),
    ("401", "no or a wrong token"),
    (
        "403",
        "a foreign Host or Origin, or a token without this right",
    ),
    ("404", "no such route"),
    ("405", "the route does not answer this method"),
    ("409", "something else of this kind is running"),
    ("413", "larger than the limits allow"),
    ("415", "no format or encoding that can be read"),
    ("422", "well formed, but not what may be stored"),
    (
        "429",
        "too much at once; Retry-After says when to come back",
    ),
    ("500", "a bug of the server"),
    (
        "501",
        "not in this build or on this host; the message says why",
    ),
    (
        "503",
        "the disk is full, or the server is ending; Retry-After says when to come back",
    ),
];

/// OpenAPI 3.1.
pub(crate) async fn openapi() -> Reply {
    let document = document();
    Reply::new("application/json", document.to_string().into_bytes())
}

fn document() -> Value {
    let mut paths = serde_json::Map::new();
    for route in ROUTES.iter().chain(OTLP_ROUTES) {
        let methods = paths.entry(route.path).or_insert_with(|| json!({}));
        methods[route.method.to_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Candela",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Profiles in and flame graphs out. The shapes of the answers are described in docs/api.md.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": {"Error": {
            "type": "object",
            "required": ["code", "message", "hint"],
            "properties": {
                "code": {"type": "string", "description": "for programs: one word in snake case"},
                "message": {"type": "string", "description": "what failed and why, values named"},
                "hint": {"type": "string", "description": "what to do; may be empty"},
            },
        }}},
    })
}

fn operation(route: &Route) -> Value {
    let content: serde_json::Map<String, Value> = route
        .content_types
        .iter()
        .map(|content_type| ((*content_type).to_owned(), json!({})))
        .collect();
    let mut responses = json!({"200": {"description": route.summary, "content": content}});
    let error = json!({"$ref": "#/components/schemas/Error"});
    for (status, description) in ERRORS {
        responses[status] = json!({
            "description": description,
            "content": {"application/json": {"schema": error}},
        });
    }
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.summary,
        "parameters": route.parameters.iter().map(parameter).collect::<Vec<Value>>(),
        "responses": responses,
    });
    if route.method == "POST" {
        let bytes = json!({"application/octet-stream": {}});
        operation["requestBody"] = json!({"required": true, "content": bytes});
    }
    operation
}

fn parameter(parameter: &Parameter) -> Value {
    let schema = if parameter.is_repeatable {
        json!({"type": "array", "items": {"type": "string"}})
    } else {
        json!({"type": "string"})
    };
    json!({
        "name": parameter.name,
        "in": "query",
        "required": parameter.is_required,
        "description": parameter.description,
        "schema": schema,
    })
}

/// Unique and readable in generated clients: `get_api_v1_label_values`.
fn operation_id(route: &Route) -> String {
    let words = route
        .path
        .split(|character: char| !character.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    format!("{}_{}", route.method.to_lowercase(), words.join("_"))
}
