//! `/api/v1/fleet/persistence`: the document, its past, and how it is changed.

use axum::body::Body;
use axum::extract::Path;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header::IF_MATCH;
use candela_fleet::AcceptedDocument;
use candela_fleet::DocumentDiff;
use candela_fleet::DocumentPath;
use candela_fleet::FleetDocument;
use candela_fleet::MOST_DOCUMENT_BYTES;
use candela_fleet::Note;
use candela_fleet::Problems;
use candela_fleet::TextPosition;
use serde_json::Value;
use serde_json::json;

use super::versions::FleetVersion;
use super::versions::VersionEntry;
use super::versions::append;
use super::versions::read_current;
use super::versions::read_history;
use super::versions::read_version;
use crate::api::head::milliseconds;
use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::app::off_the_reactor;
use crate::auth::Caller;
use crate::documents::lock_documents;
use crate::json_body::read_text;
use crate::parameters::Parameters;
use crate::reply::AcceptsGzip;
use crate::reply::Reply;

/// The name in the schema of answers that are a version.
const VERSION: &str = "fleet-document";

/// What is to become the current version, and of which one.
struct Change {
    based_on: u64,
    accepted: AcceptedDocument,
    rolled_back_to: Option<u64>,
}

/// What is applied.
pub(crate) async fn current(
    State(app): State<SharedApp>,
    caller: Caller,
    accepts: AcceptsGzip,
) -> Result<Reply, ApiError> {
    off_the_reactor(move || {
        let current = read_current(&app.store, caller.one_tenant()?)?;
        let reply = Reply::json(VERSION, version_json(&current)?);
        Ok(reply.entity_tag(current.number()).compressed(accepts))
    })
    .await
}

/// One of the versions that are kept.
pub(crate) async fn version(
    State(app): State<SharedApp>,
    caller: Caller,
    Path(version): Path<String>,
    accepts: AcceptsGzip,
) -> Result<Reply, ApiError> {
    let version = number("version", &version)?;
    off_the_reactor(move || {
        let found = read_version(&app.store, caller.one_tenant()?, version)?;
        let reply = Reply::json(VERSION, version_json(&found)?);
        Ok(reply.entity_tag(version).compressed(accepts))
    })
    .await
}

/// Who applied which version, and when.
pub(crate) async fn history(
    State(app): State<SharedApp>,
    caller: Caller,
    accepts: AcceptsGzip,
) -> Result<Reply, ApiError> {
    off_the_reactor(move || {
        let versions = read_history(&app.store, caller.one_tenant()?)?;
        let versions: Vec<Value> = versions.iter().map(entry_json).collect();
        let reply = Reply::json("fleet-history", json!({"versions": versions}));
        Ok(reply.compressed(accepts))
    })
    .await
}

/// What is wrong with a document, and what applying it would change. That something is wrong is an
/// answer like any other: editors ask while their users type.
pub(crate) async fn check(
    State(app): State<SharedApp>,
    caller: Caller,
    accepts: AcceptsGzip,
    headers: HeaderMap,
    body: Body,
) -> Result<Reply, ApiError> {
    let text = read_text(&app, &headers, body, MOST_DOCUMENT_BYTES).await?;
    off_the_reactor(move || {
        let current = read_current(&app.store, caller.one_tenant()?)?;
        let answer = match FleetDocument::read(&text) {
            Ok(accepted) => {
                let mut answer = change_json(&current.document(), &accepted)?;
                answer["problems"] = json!([]);
                answer["document"] = as_json(&accepted.document)?;
                answer
            }
            Err(problems) => json!({
                "problems": problems_json(&problems)?,
                "notes": [],
                "diff": [],
                "diff_text": "",
                "document": null,
            }),
        };
        let reply = Reply::json("fleet-check", with_version(answer, current.number()));
        Ok(reply.compressed(accepts))
    })
    .await
}

/// Applies the document in the body in the place of the version that its sender knows.
pub(crate) async fn apply(
    State(app): State<SharedApp>,
    caller: Caller,
    parameters: Parameters,
    headers: HeaderMap,
    body: Body,
) -> Result<Reply, ApiError> {
    let based_on = known_version(&parameters, &headers)?;
    let text = read_text(&app, &headers, body, MOST_DOCUMENT_BYTES).await?;
    off_the_reactor(move || {
        let accepted = FleetDocument::read(&text).map_err(|problems| refused(&problems))?;
        let change = Change {
            based_on,
            accepted,
            rolled_back_to: None,
        };
        change_document(&app, &caller, &change)
    })
    .await
}

/// Applies an old version once more, as a new one.
pub(crate) async fn roll_back(
    State(app): State<SharedApp>,
    caller: Caller,
    parameters: Parameters,
    headers: HeaderMap,
) -> Result<Reply, ApiError> {
    let based_on = known_version(&parameters, &headers)?;
    let Some(version) = parameters.number::<u64>("to")? else {
        let message = "to is missing: which version is to be applied once more?";
        let error = ApiError::bad_request("missing_parameter", message);
        return Err(error.hint("GET /api/v1/fleet/persistence/history lists them"));
    };
    off_the_reactor(move || {
        let old = read_version(&app.store, &caller.tenant, version)?;
        // The rules may have become stricter since.
        let accepted = FleetDocument::read(&old.text).map_err(|problems| refused(&problems))?;
        let change = Change {
            based_on,
            accepted,
            rolled_back_to: Some(version),
        };
        change_document(&app, &caller, &change)
    })
    .await
}

/// The version of a reply that nothing was changed, or the new one.
fn change_document(app: &App, caller: &Caller, change: &Change) -> Result<Reply, ApiError> {
    let _changing = lock_documents(app);
    let current = read_current(&app.store, &caller.tenant)?;
    if change.based_on != current.number() {
        app.fleet.count_conflict();
        return Err(conflict(change.based_on, &current));
    }
    let text = change.accepted.document.to_string();
    // What was sent without a space may be longer as it is written, and would not be read again.
    if text.len() > MOST_DOCUMENT_BYTES {
        let message = format!(
            "the document has {} bytes as it is written, more than {MOST_DOCUMENT_BYTES}",
            text.len()
        );
        return Err(ApiError::unprocessable("bad_document", message).hint("make it smaller"));
    }
    let mut answer = change_json(&current.document(), &change.accepted)?;
    let is_changed = json_of(&text)? != current.json()?;
    let applied = if is_changed {
        let entry = VersionEntry {
            version: current.number() + 1,
            author: caller.name.to_string(),
            time_ms: milliseconds(app.clock.now_ns()),
            bytes: text.len() as u64,
            rolled_back_to: change.rolled_back_to,
        };
        let applied = append(&app.store, &caller.tenant, entry, text)?;
        tracing::info!(
            tenant = %caller.tenant,
            author = %caller.name,
            version = applied.number(),
            "the fleet's document was changed"
        );
        app.fleet.count_change();
        app.fleet.publish(&caller.tenant, &applied)?;
        applied
    } else {
        current
    };
    answer["changed"] = is_changed.into();
    merge(&mut answer, version_json(&applied)?);
    Ok(Reply::json(VERSION, answer).entity_tag(applied.number()))
}

/// The version that the sender of a change has seen, of `If-Match` or of the parameter `version`.
fn known_version(parameters: &Parameters, headers: &HeaderMap) -> Result<u64, ApiError> {
    let hint = "send the version that the change is of as If-Match: VERSION or ?version=VERSION; \
                GET /api/v1/fleet/persistence has it, 0 is that of a fleet without a document";
    let of_header = match headers.get(IF_MATCH) {
        None => None,
        Some(value) => {
            let text = value.to_str().unwrap_or("?").trim();
            // Proxies that compress make a tag a weak one; what it names is the same.
            let text = text.strip_prefix("W/").unwrap_or(text).trim_matches('"');
            Some(number("If-Match", text).map_err(|error| error.hint(hint))?)
        }
    };
    let of_parameter = parameters.number::<u64>("version")?;
    match (of_header, of_parameter) {
        (Some(one), Some(other)) if one != other => {
            let message = format!("If-Match says version {one}, and the parameter {other}");
            Err(ApiError::bad_request("two_versions", message).hint("send one of them"))
        }
        (Some(version), _) | (None, Some(version)) => Ok(version),
        (None, None) => {
            let message = "which version is to be changed? somebody else may have changed it";
            Err(ApiError::bad_request("missing_version", message).hint(hint))
        }
    }
}

fn number(name: &str, text: &str) -> Result<u64, ApiError> {
    text.parse().map_err(|_| {
        let shown: String = text.chars().take(32).collect();
        ApiError::bad_request("bad_number", format!("{name}: {shown:?} is no version"))
    })
}

fn refused(problems: &Problems) -> ApiError {
    let details = problems_json(problems).unwrap_or_default();
    let count = problems.0.len();
    let first = problems.0.first().map(ToString::to_string);
    let first = first.unwrap_or_default();
    let message = match count {
        1 => first,
        _ => format!("the document has {count} problems; the first: {first}"),
    };
    ApiError::unprocessable("bad_document", message)
        .hint("problems has all of them; nothing was changed")
        .details(json!({"problems": details}))
}

fn conflict(based_on: u64, current: &FleetVersion) -> ApiError {
    let version = current.number();
    let message = match &current.entry {
        Some(entry) => {
            let time = jiff::Timestamp::from_millisecond(entry.time_ms);
            let time = time.map(|time| time.to_string()).unwrap_or_default();
            format!(
                "the fleet's document is at version {version}, which {} applied at {time}; \
                 version {based_on} is not the one that is changed",
                entry.author
            )
        }
        None => format!("the fleet has no document yet, and so no version {based_on}"),
    };
    ApiError::new(StatusCode::CONFLICT, "version_conflict", message)
        .hint("get it, look at what has changed, and apply to that version")
        .details(json!({"current": current_json(current)}))
}

fn version_json(version: &FleetVersion) -> Result<Value, ApiError> {
    let mut value = current_json(version);
    value["document"] = as_json(&version.json()?)?;
    Ok(value)
}

fn current_json(version: &FleetVersion) -> Value {
    match &version.entry {
        Some(entry) => entry_json(entry),
        None => json!({"version": 0, "author": null, "time": null, "rolled_back_to": null}),
    }
}

fn entry_json(entry: &VersionEntry) -> Value {
    json!({
        "version": entry.version,
        "author": entry.author,
        "time": entry.time_ms,
        "rolled_back_to": entry.rolled_back_to,
    })
}

/// What leads from the one to the other, and what its author should know.
fn change_json(old: &FleetDocument, accepted: &AcceptedDocument) -> Result<Value, ApiError> {
    let diff = DocumentDiff::between(old, &accepted.document);
    Ok(json!({
        "notes": notes_json(&accepted.notes)?,
        "diff": as_json(&diff)?,
        "diff_text": diff.to_string(),
    }))
}

fn problems_json(problems: &Problems) -> Result<Value, ApiError> {
    let rows = problems.0.iter().map(|problem| {
        let text = problem.to_string();
        remark_json(&problem.path, problem.position, &problem.message, &text)
    });
    rows.collect::<Result<Vec<Value>, ApiError>>()
        .map(Value::from)
}

fn notes_json(notes: &[Note]) -> Result<Value, ApiError> {
    let rows = notes.iter().map(|note| {
        let text = note.to_string();
        let mut row = remark_json(&note.path, note.position, &note.message, &text)?;
        row["kind"] = as_json(&note.kind)?;
        Ok(row)
    });
    rows.collect::<Result<Vec<Value>, ApiError>>()
        .map(Value::from)
}

/// The steps of the path for programs, `text` for people.
fn remark_json(
    path: &DocumentPath,
    position: Option<TextPosition>,
    message: &str,
    text: &str,
) -> Result<Value, ApiError> {
    Ok(json!({
        "path": as_json(path)?,
        "position": as_json(&position)?,
        "message": message,
        "text": text,
    }))
}

fn as_json(value: &impl serde::Serialize) -> Result<Value, ApiError> {
    serde_json::to_value(value).map_err(ApiError::unwritten)
}

fn json_of(text: &str) -> Result<candela_fleet::Json, ApiError> {
    serde_json::from_str(text).map_err(ApiError::unwritten)
}

fn with_version(mut answer: Value, version: u64) -> Value {
    answer["version"] = version.into();
    answer
}

fn merge(answer: &mut Value, more: Value) {
    if let (Value::Object(answer), Value::Object(more)) = (answer, more) {
        answer.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use axum::http::Uri;

    use super::*;

    #[test]
    fn a_change_names_the_version_that_it_is_of() {
        let known = |header: Option<&'static str>, query: &'static str| {
            let mut headers = HeaderMap::new();
            if let Some(value) = header {
                headers.insert(IF_MATCH, HeaderValue::from_static(value));
            }
            let uri: Uri = format!("/?{query}").parse().expect("an address");
            known_version(&Parameters::of(&uri), &headers).map_err(|error| error.code)
        };
        for header in ["7", "\"7\"", "W/\"7\"", " 7 "] {
            assert_eq!(known(Some(header), ""), Ok(7), "{header}");
        }
        assert_eq!(known(None, "version=7"), Ok(7));
        assert_eq!(known(Some("7"), "version=7"), Ok(7));
        assert_eq!(known(Some("7"), "version=8"), Err("two_versions"));
        assert_eq!(known(None, ""), Err("missing_version"));
        // What matches everything would overwrite unseen.
        for header in ["*", "", "-1", "\"a\"", "1, 2"] {
            assert_eq!(known(Some(header), ""), Err("bad_number"), "{header}");
        }
    }
}
