//! The OpenAPI document, made from the tables of routes so that it cannot say anything else.

use serde_json::Value;
use serde_json::json;

use crate::auth::Right;
use crate::reply::Reply;
use crate::route_parameters::Parameter;
use crate::routes::JSON;
use crate::routes::Route;
use crate::surfaces::Reach;
use crate::surfaces::SURFACES;
use crate::surfaces::Surface;

/// Every status that stands for an error, with what it means here.
const ERRORS: [(&str, &str); 14] = [
    ("400", "a parameter or the body does not make sense"),
    ("401", "no or a wrong token, user or password, or no tenant"),
    (
        "403",
        "a foreign Host or Origin, a token or user without this right, or another's tenant",
    ),
    ("404", "no such route, or nothing of what was waited for"),
    ("405", "the route does not answer this method"),
    ("408", "the body did not arrive in time"),
    (
        "409",
        "something else of this kind is running, or somebody else has changed it",
    ),
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

/// Bodies whose format their own bytes tell.
const ANY_BYTES: &[&str] = &["application/octet-stream"];
/// A profile file, or a form with one or two.
const FILES: &[&str] = &["application/octet-stream", "multipart/form-data"];
/// SQL, alone or as `query` of an object.
const SQL: &[&str] = &["text/plain", "application/json"];

/// Messages, which are answered in the encoding that they come in.
const MESSAGES: [&str; 2] = ["application/proto", "application/x-protobuf"];

/// OpenAPI 3.1.
pub(crate) async fn openapi() -> Reply {
    let document = document();
    Reply::new("application/json", document.to_string().into_bytes())
}

fn document() -> Value {
    let mut paths = serde_json::Map::new();
    for surface in SURFACES {
        for route in surface.routes {
            let methods = paths.entry(route.path).or_insert_with(|| json!({}));
            methods[route.method.to_lowercase()] = operation(surface, route);
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Candela",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Profiles in and flame graphs out. The shapes of the answers are described in docs/api.md. Routes with x-surface are those that clients of others know (docs/pyroscope.md, docs/profefe.md): they answer and fail as these clients expect, and leave alone what they do not know. x-prefix tells where a route answers: at the root only, under configured prefixes, or under any.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"securitySchemes": {
            "token": {"type": "http", "scheme": "bearer"},
            "user": {"type": "http", "scheme": "basic"},
        }, "schemas": {"Error": {
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

fn contents(content_types: &[&str]) -> Value {
    let content_types = content_types.iter();
    let contents = content_types.map(|content_type| ((*content_type).to_owned(), json!({})));
    Value::Object(contents.collect())
}

/// What a route reads.
fn body_types(route: &Route) -> &'static [&'static str] {
    match route.path {
        "/api/v1/sql" => SQL,
        path if path.starts_with("/api/v1/files") => FILES,
        path if path.starts_with("/api/v1/fleet") => JSON,
        _ if route.content_types.iter().any(|it| MESSAGES.contains(it)) => route.content_types,
        _ => ANY_BYTES,
    }
}

fn operation(surface: &Surface, route: &Route) -> Value {
    let content = contents(route.content_types);
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
        "parameters": path_parameters(route.path)
            .chain(route.parameters.iter().map(parameter))
            .collect::<Vec<Value>>(),
        "responses": responses,
        "security": security(route.right),
        "x-right": route.right.name(),
        "x-prefix": match surface.reach {
            Reach::Root => "none",
            Reach::Prefixes => "configured",
            Reach::AnyPrefix => "any",
        },
    });
    if let Some(name) = surface.name {
        operation["x-surface"] = name.into();
    }
    if matches!(route.method, "POST" | "PUT") {
        let content = contents(body_types(route));
        operation["requestBody"] = json!({"required": true, "content": content});
    }
    operation
}

/// Either of the two, where the server asks who it is.
fn security(right: Right) -> Value {
    match right {
        Right::Anyone => json!([]),
        Right::Read | Right::Write | Right::Admin | Right::Server => {
            json!([{"token": []}, {"user": []}, {}])
        }
    }
}

/// The parts of a path that stand in braces.
fn path_parameters(path: &str) -> impl Iterator<Item = Value> {
    let names = path.split('/').filter_map(|part| {
        let name = part.strip_prefix('{')?;
        name.strip_suffix('}')
    });
    names.map(|name| {
        json!({
            "name": name,
            "in": "path",
            "required": true,
            "schema": {"type": "string"},
        })
    })
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
