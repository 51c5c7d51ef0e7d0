//! `POST /api/v1/files`: what is in a file.

use candela_formats::Format;
use candela_formats::Report;
use candela_formats::type_json;
use candela_model::ProfileType;
use candela_query::Engine;
use candela_query::Query;
use serde_json::Value;
use serde_json::json;

use super::sent::SentFiles;
use crate::api::errors::query_error;
use crate::api::milliseconds;
use crate::api_error::ApiError;
use crate::reply::Reply;
use crate::turns::Lane;

/// 2000-01-01: what lies before is a clock that counts from the start of a machine, or no time.
const FIRST_DATE_MS: i64 = 946_684_800_000;

/// What the window needs to list a file, and to ask about it.
pub(crate) async fn about(sent: SentFiles) -> Result<Reply, ApiError> {
    let file = std::sync::Arc::clone(&sent.file);
    sent.into_question()?
        .answer(Lane::Queries, move |engine, query| {
            let found = engine.types(query).map_err(query_error)?.value;
            let types = found.iter().map(|it| described(engine, query, it));
            let types = types.collect::<Result<Vec<Value>, ApiError>>()?;
            let labels = engine.labels(query).map_err(query_error)?.value;
            let from_ms = milliseconds(file.range.from_ns);
            let is_dated = from_ms >= FIRST_DATE_MS;
            let notes = notes_of(&file.report);
            Ok(Reply::json(
                "file",
                json!({
                    "id": file.id.to_string(),
                    "bytes": file.bytes,
                    "format": file.format.name(),
                    "format_description": file.format.description(),
                    "from": from_ms,
                    "to": milliseconds(file.range.to_ns),
                    "is_dated": is_dated,
                    "profiles": file.profile_count,
                    "samples": file.samples,
                    "default_type": file.default_type.as_ref().map(ToString::to_string),
                    "types": types,
                    "labels": labels,
                    "notes": notes,
                    "comments": comments_of(file.format, &file.report),
                }),
            ))
        })
        .await
}

/// A type with what all of it comes to.
fn described(
    engine: &Engine,
    query: &Query,
    profile_type: &ProfileType,
) -> Result<Value, ApiError> {
    let query = Query {
        profile_type: profile_type.to_string(),
        ..query.clone()
    };
    let services = engine.services(&query).map_err(query_error)?;
    let totals = services.value.services.iter().map(|it| it.total);
    let total = totals.fold(0, i64::saturating_add);
    let mut value = type_json(profile_type);
    value["total"] = json!(total);
    Ok(value)
}

fn notes_of(report: &Report) -> Vec<Value> {
    let notes = report.notes.iter();
    let notes = notes.map(|it| json!({"code": it.code, "count": it.count, "text": it.text}));
    let refused = report.rejected.iter().map(|it| {
        json!({"code": it.reason, "count": it.profiles, "text": format!("profiles were refused: {}", it.example)})
    });
    notes.chain(refused).collect()
}

/// Other formats have the command line there, which may hold secrets and is not meant to be passed on.
fn comments_of(format: Format, report: &Report) -> &[String] {
    if format == Format::Pprof {
        return &report.comments;
    }
    &[]
}
