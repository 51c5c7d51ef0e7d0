//! `/api/v1/symbols`: files that name what was stored as addresses.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Path;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header::CONTENT_ENCODING;
use axum::http::header::CONTENT_LENGTH;
use bytes::Bytes;
use candela_store::UnsymbolizedBinary;
use candela_symbols::Accepted;
use candela_symbols::ArchiveError;
use candela_symbols::ArchivedFile;
use futures::StreamExt;
use serde_json::Value;
use serde_json::json;
use tokio::sync::mpsc;

use crate::api::head::milliseconds;
use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::app::off_the_reactor;
use crate::auth::Caller;
use crate::parameters::Parameters;
use crate::reply::AcceptsGzip;
use crate::reply::Reply;
use crate::reply::answer_list;
use crate::symbolization::Symbolization;

/// Pieces of a body that wait for the disk.
const WAITING_PIECES: usize = 8;

/// Keeps the file in the body and puts its names into what is stored.
pub(crate) async fn upload(
    State(app): State<SharedApp>,
    parameters: Parameters,
    headers: HeaderMap,
    body: Body,
) -> Result<Reply, ApiError> {
    let symbolization = symbolization(&app)?;
    let _slot = symbolization.uploads.try_acquire().map_err(|_| {
        let message = "other symbol files are being received";
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, "busy", message).hint("try again")
    })?;
    let name = parameters.one("name").unwrap_or("the body").to_owned();
    let accepted = receive(&app, &headers, body, name).await?;
    if accepted.is_new {
        symbolization.wake(&accepted.file.build_id.to_ascii_lowercase());
    }
    let mut value = file_json(&accepted.file);
    value["is_new"] = accepted.is_new.into();
    Ok(Reply::json("symbol-file", value))
}

/// What is kept, and what is missing.
pub(crate) async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    _: Parameters,
    accepts: AcceptsGzip,
) -> Result<Reply, ApiError> {
    symbolization(&app)?;
    answer_list(&app, caller, accepts, move |app, caller| {
        let archive = &symbolization(app)?.sources.archive;
        let files = archive.files();
        let wanted = wanted(app, caller);
        let value = json!({
            "files": files.iter().map(file_json).collect::<Vec<Value>>(),
            "bytes": archive.bytes(),
            "wanted": wanted.iter().map(wanted_json).collect::<Vec<Value>>(),
        });
        Ok(Reply::json("symbols", value))
    })
    .await
}

/// What is known of a build id.
pub(crate) async fn one(
    State(app): State<SharedApp>,
    caller: Caller,
    Path(build_id): Path<String>,
    accepts: AcceptsGzip,
) -> Result<Reply, ApiError> {
    answer_list(&app, caller, accepts, move |app, caller| {
        let archive = &symbolization(app)?.sources.archive;
        let file = archive.file(&build_id).or_else(|| {
            let lower_case = build_id.to_ascii_lowercase();
            archive.file(&lower_case)
        });
        let wanted = wanted(app, caller);
        let mut wanted = wanted.iter();
        let wanted = wanted.find(|binary| binary.build_id.eq_ignore_ascii_case(&build_id));
        let value = json!({
            "build_id": build_id,
            "file": file.as_ref().map(file_json),
            "wanted": wanted.map(wanted_json),
        });
        Ok(Reply::json("symbol", value))
    })
    .await
}

/// The binaries that the tenants of a caller have nameless addresses of. What is kept of a binary is
/// of no tenant: a build id is of the same bytes whoever runs them.
fn wanted(app: &App, caller: &Caller) -> Vec<UnsymbolizedBinary> {
    let mut sums: BTreeMap<String, UnsymbolizedBinary> = BTreeMap::new();
    let tenants = caller.tenants().iter();
    for binary in tenants.flat_map(|tenant| app.store.unsymbolized(Some(tenant))) {
        match sums.entry(binary.build_id.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(binary);
            }
            Entry::Occupied(mut entry) => {
                let sum = entry.get_mut();
                sum.samples += binary.samples;
                sum.locations += binary.locations;
                sum.blocks += binary.blocks;
            }
        }
    }
    let mut wanted: Vec<UnsymbolizedBinary> = sums.into_values().collect();
    wanted.sort_by_key(|binary| std::cmp::Reverse(binary.samples));
    wanted
}

fn symbolization(app: &App) -> Result<&Symbolization, ApiError> {
    app.symbolization.as_ref().ok_or_else(|| {
        let message = "this server keeps no symbols";
        ApiError::new(StatusCode::NOT_IMPLEMENTED, "no_symbols_kept", message)
    })
}

/// Writes the body to disk as it comes: debug files are larger than what a request may hold in
/// memory.
async fn receive(
    app: &SharedApp,
    headers: &HeaderMap,
    body: Body,
    name: String,
) -> Result<Accepted, ApiError> {
    let archive = Arc::clone(&symbolization(app)?.sources.archive);
    check_headers(headers, archive.max_file_bytes())?;
    let now_ms = milliseconds(app.clock.now_ns());
    let (pieces, mut received) = mpsc::channel::<Option<Bytes>>(WAITING_PIECES);
    let writing = tokio::spawn(off_the_reactor(move || {
        let mut incoming = archive.receive().map_err(|error| refusal(&error))?;
        while let Some(piece) = received.blocking_recv() {
            let Some(piece) = piece else {
                let accepted = incoming.finish(&name, now_ms);
                return accepted.map_err(|error| refusal(&error));
            };
            incoming.write(&piece).map_err(|error| refusal(&error))?;
        }
        // Whoever awaits this has an error of its own.
        Err(ApiError::bad_request("broken_body", "the body broke off"))
    }));
    let sent = send(app, body, pieces).await;
    let written = writing.await;
    let written = written.unwrap_or_else(|_| Err(ApiError::internal("the file was not written")));
    match sent {
        // The writer has left: it says why.
        Ok(()) => written,
        Err(error) => Err(error),
    }
}

/// Hands over the pieces, and `None` at the end. Ends early when nobody takes them.
async fn send(app: &App, body: Body, pieces: mpsc::Sender<Option<Bytes>>) -> Result<(), ApiError> {
    let mut chunks = body.into_data_stream();
    loop {
        let patience = app.limits.body_timeout;
        let chunk = tokio::time::timeout(patience, chunks.next()).await;
        let chunk = chunk.map_err(|_| {
            let message = format!("nothing of the body came for {} s", patience.as_secs());
            ApiError::new(StatusCode::REQUEST_TIMEOUT, "slow_body", message)
        })?;
        let piece = chunk.transpose().map_err(|error| {
            ApiError::bad_request("broken_body", format!("the body broke off: {error}"))
        })?;
        let is_last = piece.is_none();
        if pieces.send(piece).await.is_err() || is_last {
            return Ok(());
        }
    }
}

fn check_headers(headers: &HeaderMap, limit: u64) -> Result<(), ApiError> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let encoding = text(CONTENT_ENCODING).unwrap_or("identity");
    if !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity") {
        let message = format!("content-encoding {encoding:?} is not taken for symbol files");
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(
            ApiError::new(status, "unknown_encoding", message).hint("send the file as it is")
        );
    }
    let announced = text(CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
    match announced {
        Some(bytes) if bytes > limit => Err(refusal(&ArchiveError::TooLarge { limit })),
        _ => Ok(()),
    }
}

fn refusal(error: &ArchiveError) -> ApiError {
    let message = match error {
        ArchiveError::Io { source, .. } => format!("cannot write the file: {}", source.kind()),
        other => other.to_string(),
    };
    let (status, code, hint) = match error {
        ArchiveError::NotElf { .. } => (
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "not_elf",
            "send the program or library itself, or its debug file",
        ),
        ArchiveError::NoBuildId { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "no_build_id", ""),
        ArchiveError::NoSymbols { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "no_symbols", ""),
        ArchiveError::TooLarge { .. } => (
            StatusCode::PAYLOAD_TOO_LARGE,
            "too_large",
            "raise symbols.max_file_size, or send the debug file alone",
        ),
        ArchiveError::Full { .. } => (
            StatusCode::SERVICE_UNAVAILABLE,
            "symbols_full",
            "raise symbols.max_size, or delete files below symbols/uploaded of the data directory and start again",
        ),
        _ => (
            StatusCode::SERVICE_UNAVAILABLE,
            "symbols_not_written",
            "send it again later; the server's log has the reason",
        ),
    };
    if status == StatusCode::SERVICE_UNAVAILABLE {
        tracing::error!("a symbol file was not kept: {error}");
    }
    ApiError::new(status, code, message).hint(hint)
}

fn file_json(file: &ArchivedFile) -> Value {
    json!({
        "build_id": file.build_id,
        "name": file.name,
        "bytes": file.bytes,
        "sha256": file.sha256,
        "uploaded_ms": file.uploaded_at_ms,
        "contents": file.contents,
    })
}

fn wanted_json(binary: &UnsymbolizedBinary) -> Value {
    json!({
        "build_id": binary.build_id,
        "mapping": binary.mapping_file,
        "samples": binary.samples,
        "addresses": binary.locations,
        "blocks": binary.blocks,
    })
}
