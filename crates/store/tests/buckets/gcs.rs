//! As much of the XML interface of Google Cloud Storage as clients of objects use.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;

use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::extract::Path;
use axum::extract::Query;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::Method;
use axum::http::StatusCode;
use axum::http::header;
use axum::response::IntoResponse;
use axum::response::Response;
use axum::routing::any;
use axum::routing::get;
use candela_store::Backend;
use candela_store::GcsOptions;
use candela_store::Secret;

use super::serve::BUCKET;
use super::serve::serve;

/// A page of a listing, so that clients have to ask for the next.
const PAGE: usize = 5;
/// When all objects were written.
const WRITTEN: (&str, &str) = ("2024-11-21T12:00:00Z", "Thu, 21 Nov 2024 12:00:00 GMT");

#[derive(Default)]
struct Objects {
    objects: BTreeMap<String, Object>,
    uploads: BTreeMap<String, BTreeMap<u32, Bytes>>,
    generation: u64,
}

#[derive(Clone)]
struct Object {
    content: Bytes,
    generation: u64,
}

type Shared = Arc<Mutex<Objects>>;
type Parameters = BTreeMap<String, String>;

/// The URL of a new server.
pub(crate) fn start_at() -> String {
    let objects = Shared::default();
    let router = Router::new()
        .route("/{bucket}", get(list))
        .route("/{bucket}/{*key}", any(object))
        .layer(DefaultBodyLimit::disable())
        .with_state(objects);
    let address = serve(async move |listener| {
        axum::serve(listener, router).await.expect("serves");
    });
    format!("http://{address}")
}

/// The options of a client of a new server.
pub(crate) fn start() -> GcsOptions {
    let url = start_at();
    let key = format!(
        r#"{{"gcs_base_url": "{url}", "disable_oauth": true, "client_email": "", "private_key": "", "private_key_id": ""}}"#
    );
    GcsOptions {
        bucket_name: BUCKET.to_owned(),
        service_account: Some(Secret::new(&key)),
        prefix: "prod".to_owned(),
    }
}

pub(crate) fn backend() -> Backend {
    Backend::Gcs(start())
}

async fn list(
    State(objects): State<Shared>,
    Path(bucket): Path<String>,
    Query(parameters): Query<Parameters>,
) -> Response {
    if bucket != BUCKET {
        return no_such("NoSuchBucket", "The specified bucket does not exist.");
    }
    let value = |name: &str| parameters.get(name).map_or("", String::as_str);
    let (prefix, delimiter) = (value("prefix"), value("delimiter"));
    let after = value("continuation-token").max(value("start-after"));
    let mut entries: BTreeMap<String, String> = BTreeMap::new();
    for (key, object) in &objects.lock().expect("a lock").objects {
        let Some(rest) = key.strip_prefix(prefix) else {
            continue;
        };
        let folder = rest.split_once('/').filter(|_| !delimiter.is_empty());
        if let Some((folder, _)) = folder {
            let name = format!("{prefix}{folder}/");
            let entry = format!("<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>");
            entries.insert(name, entry);
            continue;
        }
        let entry = format!(
            "<Contents><Key>{key}</Key><LastModified>{}</LastModified><ETag>\"{}\"</ETag><Size>{}</Size></Contents>",
            WRITTEN.0,
            object.generation,
            object.content.len()
        );
        entries.insert(key.clone(), entry);
    }
    entries.retain(|name, _| name.as_str() > after);
    let is_more = entries.len() > PAGE;
    let page: Vec<(String, String)> = entries.into_iter().take(PAGE).collect();
    let next = match page.last() {
        Some((name, _)) if is_more => {
            format!("<NextContinuationToken>{name}</NextContinuationToken>")
        }
        _ => String::new(),
    };
    let page: String = page.into_iter().map(|(_, entry)| entry).collect();
    xml(&format!(
        "<ListBucketResult>{page}{next}</ListBucketResult>"
    ))
}

async fn object(
    State(objects): State<Shared>,
    Path((bucket, key)): Path<(String, String)>,
    Query(parameters): Query<Parameters>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if bucket != BUCKET {
        return no_such("NoSuchBucket", "The specified bucket does not exist.");
    }
    let mut objects = objects.lock().expect("a lock");
    let upload = parameters.get("uploadId");
    match (method, upload) {
        (Method::PUT, Some(upload)) => objects.put_part(upload, &parameters, body),
        (Method::PUT, None) => objects.put(key, &headers, body),
        (Method::POST, None) => objects.start_upload(),
        (Method::POST, Some(upload)) => objects.end_upload(upload, key),
        (Method::DELETE, Some(upload)) => {
            objects.uploads.remove(upload);
            StatusCode::NO_CONTENT.into_response()
        }
        (Method::DELETE, None) => match objects.objects.remove(&key) {
            Some(_) => StatusCode::NO_CONTENT.into_response(),
            None => no_such("NoSuchKey", "The specified key does not exist."),
        },
        (Method::GET | Method::HEAD, _) => match objects.objects.get(&key) {
            Some(object) => object.answer(&headers),
            None => no_such("NoSuchKey", "The specified key does not exist."),
        },
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
}

impl Objects {
    fn put(&mut self, key: String, headers: &HeaderMap, content: Bytes) -> Response {
        let wanted = headers.get("x-goog-if-generation-match");
        let wanted = wanted.map(|wanted| wanted.to_str().expect("a number").to_owned());
        let known = self.objects.get(&key).map_or(0, |it| it.generation);
        if wanted.is_some_and(|wanted| wanted != known.to_string()) {
            return StatusCode::PRECONDITION_FAILED.into_response();
        }
        self.generation += 1;
        let generation = self.generation;
        let object = Object {
            content,
            generation,
        };
        self.objects.insert(key, object);
        let headers = [
            ("etag", format!("\"{generation}\"")),
            ("x-goog-generation", generation.to_string()),
        ];
        headers.into_response()
    }

    fn start_upload(&mut self) -> Response {
        self.generation += 1;
        let id = format!("upload-{}", self.generation);
        self.uploads.insert(id.clone(), BTreeMap::new());
        xml(&format!(
            "<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
        ))
    }

    fn put_part(&mut self, upload: &str, parameters: &Parameters, content: Bytes) -> Response {
        let number = parameters["partNumber"].parse().expect("a number");
        let Some(parts) = self.uploads.get_mut(upload) else {
            return no_such("NoSuchUpload", "The specified upload does not exist.");
        };
        parts.insert(number, content);
        [("etag", format!("\"{upload}-{number}\""))].into_response()
    }

    fn end_upload(&mut self, upload: &str, key: String) -> Response {
        let Some(parts) = self.uploads.remove(upload) else {
            return no_such("NoSuchUpload", "The specified upload does not exist.");
        };
        let content: Vec<u8> = parts.into_values().flatten().collect();
        let mut answer = self.put(key, &HeaderMap::new(), content.into());
        let body = format!(
            "<CompleteMultipartUploadResult><ETag>\"{}\"</ETag></CompleteMultipartUploadResult>",
            self.generation
        );
        *answer.body_mut() = body.into();
        answer
    }
}

impl Object {
    fn answer(&self, headers: &HeaderMap) -> Response {
        let size = self.content.len();
        let common = [
            (header::ETAG, format!("\"{}\"", self.generation)),
            (header::LAST_MODIFIED, WRITTEN.1.to_owned()),
        ];
        let Some(range) = headers.get(header::RANGE) else {
            return (common, self.content.clone()).into_response();
        };
        let range = range.to_str().expect("text");
        let bounds = range
            .strip_prefix("bytes=")
            .and_then(|it| it.split_once('-'));
        let (first, last) = bounds.expect("a range");
        let first: usize = first.parse().expect("a number");
        if first >= size {
            return StatusCode::RANGE_NOT_SATISFIABLE.into_response();
        }
        let last = last.parse().unwrap_or(size - 1).min(size - 1);
        let content_range = format!("bytes {first}-{last}/{size}");
        let headers = [(header::CONTENT_RANGE, content_range)];
        let content = self.content.slice(first..=last);
        (StatusCode::PARTIAL_CONTENT, common, headers, content).into_response()
    }
}

fn no_such(code: &str, message: &str) -> Response {
    let body = format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>");
    (StatusCode::NOT_FOUND, body).into_response()
}

fn xml(body: &str) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/xml")];
    let body = format!("<?xml version='1.0' encoding='UTF-8'?>{body}");
    (headers, body).into_response()
}
