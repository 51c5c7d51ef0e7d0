//! `/api/v1/annotations`: what happened and when, drawn over what it may explain.

mod annotation;

use axum::body::Body;
use axum::extract::State;
use candela_store::Store;
use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

pub use self::annotation::Annotation;
pub use self::annotation::AnnotationError;

use crate::api::head::milliseconds;
use crate::api::selection::range_parameters;
use crate::api::selection::selector_of;
use crate::api_error::ApiError;
use crate::app::SharedApp;
use crate::app::off_the_reactor;
use crate::auth::Caller;
use crate::json_body::read_json;
use crate::kept_list::change_list;
use crate::kept_list::new_id;
use crate::kept_list::read_list;
use crate::kept_list::remove_named;
use crate::kept_list::write_list;
use crate::parameters::Parameters;
use crate::reply::AcceptsGzip;
use crate::reply::Reply;
use crate::time::parse_time;

/// As many as a tenant keeps: some deploys a day for years. The oldest goes when one more comes, since
/// a deploy that fails because of notes about older ones would be worse.
const MOST_ANNOTATIONS: usize = 2000;

const DEFAULT_KIND: &str = "note";
const HINT: &str = r#"{"text": "checkout v2", "kind": "deploy", "time": "now", "labels": {"service_name": "checkout", "version": "v2"}}"#;

/// The body of a new one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    text: String,
    kind: Option<String>,
    time: Option<Value>,
    end: Option<Value>,
    #[serde(default)]
    labels: std::collections::BTreeMap<String, String>,
}

/// Those of a range that are about a selection, by time.
pub(crate) async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    parameters: Parameters,
    accepts: AcceptsGzip,
) -> Result<Reply, ApiError> {
    let selector = selector_of(&parameters)?;
    let range = range_parameters(&app, &parameters)?;
    let (from_ms, to_ms) = (milliseconds(range.from_ns), milliseconds(range.to_ns));
    let kinds: Vec<String> = parameters.all("kind").map(str::to_owned).collect();
    off_the_reactor(move || {
        let mut found: Vec<Annotation> = Vec::new();
        for tenant in caller.tenants() {
            let kept: Vec<Annotation> = read_list(&app.store, tenant)?;
            found.extend(kept.into_iter().filter(|it| {
                it.is_within(from_ms, to_ms)
                    && it.is_about(&selector)
                    && (kinds.is_empty() || kinds.contains(&it.kind))
            }));
        }
        found.sort_by(|left, right| (left.time_ms, &left.id).cmp(&(right.time_ms, &right.id)));
        let found: Vec<Value> = found.iter().map(as_json).collect();
        let answer = json!({"from": from_ms, "to": to_ms, "annotations": found});
        Ok(Reply::json("annotations", answer).compressed(accepts))
    })
    .await
}

/// Keeps one more.
pub(crate) async fn add(
    State(app): State<SharedApp>,
    caller: Caller,
    body: Body,
) -> Result<Reply, ApiError> {
    let given: Given = read_json(&app, body, HINT).await?;
    let now_ns = app.clock.now_ns();
    let time_of = |name: &str, value: Option<&Value>| {
        let Some(value) = value.filter(|value| !value.is_null()) else {
            return Ok(None);
        };
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let time = parse_time(&text, now_ns);
        let time = time.map_err(|error| {
            ApiError::bad_request("bad_time", format!("{name}: {error}")).hint(HINT)
        })?;
        Ok(Some(milliseconds(time)))
    };
    let now_ms = milliseconds(now_ns);
    let annotation = Annotation {
        id: new_id(now_ms)?,
        time_ms: time_of("time", given.time.as_ref())?.unwrap_or(now_ms),
        end_ms: time_of("end", given.end.as_ref())?,
        kind: given.kind.unwrap_or_else(|| DEFAULT_KIND.to_owned()),
        text: given.text.trim().to_owned(),
        labels: given.labels,
        author: caller.name.to_string(),
        created_ms: now_ms,
    };
    let checked = annotation.check();
    checked
        .map_err(|error| ApiError::bad_request("bad_annotation", error.to_string()).hint(HINT))?;
    off_the_reactor(move || {
        let mut answer = as_json(&annotation);
        let dropped = change_list(&app, &caller.tenant, |kept| {
            kept.push(annotation);
            Ok(drop_oldest(kept))
        })?;
        answer["dropped"] = dropped.into();
        Ok(Reply::json("annotation", answer))
    })
    .await
}

/// Forgets one.
pub(crate) async fn remove(
    State(app): State<SharedApp>,
    caller: Caller,
    parameters: Parameters,
) -> Result<Reply, ApiError> {
    remove_named::<Annotation>(app, caller, &parameters).await
}

/// Keeps annotations of who has the store itself, such as a demo. Those that have no id get one.
///
/// # Errors
/// When one of them is none, or the list cannot be read or written.
pub fn annotate(
    store: &Store,
    tenant: &str,
    annotations: impl IntoIterator<Item = Annotation>,
) -> Result<(), AnnotationError> {
    let not_kept = |error: ApiError| AnnotationError::NotKept {
        reason: error.message,
    };
    let mut kept: Vec<Annotation> = read_list(store, tenant).map_err(not_kept)?;
    for mut annotation in annotations {
        annotation.check()?;
        if annotation.id.is_empty() {
            annotation.id = new_id(annotation.created_ms).map_err(not_kept)?;
        }
        kept.push(annotation);
    }
    drop_oldest(&mut kept);
    write_list(store, tenant, kept).map_err(not_kept)
}

/// How many had to go.
fn drop_oldest(kept: &mut Vec<Annotation>) -> usize {
    let excess = kept.len().saturating_sub(MOST_ANNOTATIONS);
    if excess > 0 {
        // By when they were made: one that tells of a time long ago is not the first to go.
        kept.sort_by_key(|it| it.created_ms);
        kept.drain(..excess);
    }
    excess
}

fn as_json(annotation: &Annotation) -> Value {
    json!({
        "id": annotation.id,
        "time": annotation.time_ms,
        "end": annotation.end_ms,
        "kind": annotation.kind,
        "text": annotation.text,
        "labels": annotation.labels,
        "author": annotation.author,
        "created": annotation.created_ms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_gives_way() {
        let of = |created_ms| Annotation {
            created_ms,
            // One of a day that is long gone is as new as any.
            time_ms: -created_ms,
            ..Annotation::default()
        };
        let most = i64::try_from(MOST_ANNOTATIONS).expect("a small number");
        let mut kept: Vec<Annotation> = (1..=most).rev().map(of).collect();
        assert_eq!(drop_oldest(&mut kept), 0);
        kept.push(of(most + 1));
        assert_eq!(drop_oldest(&mut kept), 1);
        assert!(kept.len() == MOST_ANNOTATIONS && kept.iter().all(|it| it.created_ms != 1));
    }
}
