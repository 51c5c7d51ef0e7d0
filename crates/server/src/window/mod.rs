//! The embedded window: the files of `ui/dist`, as they were when this crate was built.

use axum::Router;
use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::HeaderValue;
use axum::http::StatusCode;
use axum::http::Uri;
use axum::http::header::CACHE_CONTROL;
use axum::http::header::CONTENT_ENCODING;
use axum::http::header::CONTENT_TYPE;
use axum::http::header::ETAG;
use axum::http::header::IF_NONE_MATCH;
use axum::http::header::VARY;
use axum::response::Redirect;
use axum::response::Response;
use axum::routing::get;
use bytes::Bytes;

use crate::app::SharedApp;
use crate::reply::AcceptsGzip;

/// A file of the window.
struct Asset {
    path: &'static str,
    content_type: &'static str,
    etag: &'static str,
    plain: &'static [u8],
    gzip: Option<&'static [u8]>,
}

static ASSETS: &[Asset] = &include!(concat!(env!("OUT_DIR"), "/window_assets.rs"));

/// The page that `candela_formats::write_html` fills with profiles; `None` when the window was not
/// built, or is not part of this build.
pub const OFFLINE_PAGE: Option<&str> = include!(concat!(env!("OUT_DIR"), "/offline_page.rs"));

const INDEX: &str = "/index.html";

/// Names under this path contain a hash of the content, so that they never change.
const HASHED: &str = "/assets/";

/// Every path of the window: its files, and without a slash behind it the prefix itself.
pub(crate) fn paths(prefix: &str) -> impl Iterator<Item = String> {
    let files = ASSETS.iter().map(|asset| asset.path(prefix));
    let page = (!prefix.is_empty()).then(|| prefix.to_owned());
    files.collect::<Vec<String>>().into_iter().chain(page)
}

/// Each file under its path, and the page itself at `/`.
pub(crate) fn add_window(mut router: Router<SharedApp>, prefix: &str) -> Router<SharedApp> {
    for asset in ASSETS {
        let path = asset.path(prefix);
        let handler = move |accepts: AcceptsGzip, headers: HeaderMap| async move {
            asset_response(asset, accepts, &headers)
        };
        router = router.route(&path, get(handler));
    }
    if prefix.is_empty() {
        return router;
    }
    // The page refers to its files relative to itself, so it must end in a slash.
    let page = format!("{prefix}/");
    let to_page = async move |uri: Uri| match uri.query() {
        // What is looked at stands in the query.
        Some(query) => Redirect::permanent(&format!("{page}?{query}")),
        None => Redirect::permanent(&page),
    };
    router.route(prefix, get(to_page))
}

impl Asset {
    fn path(&self, prefix: &str) -> String {
        match self.path {
            INDEX => format!("{prefix}/"),
            path => format!("{prefix}{path}"),
        }
    }
}

fn asset_response(asset: &'static Asset, accepts: AcceptsGzip, headers: &HeaderMap) -> Response {
    let mut response = Response::new(Body::empty());
    let caching = if asset.path.starts_with(HASHED) {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let head = response.headers_mut();
    head.insert(CACHE_CONTROL, HeaderValue::from_static(caching));
    head.insert(ETAG, HeaderValue::from_static(asset.etag));
    head.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if is_known(headers, asset.etag) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return response;
    }
    head.insert(CONTENT_TYPE, HeaderValue::from_static(asset.content_type));
    let body = match asset.gzip {
        Some(gzip) if accepts.0 => {
            head.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            gzip
        }
        _ => asset.plain,
    };
    *response.body_mut() = Body::from(Bytes::from_static(body));
    response
}

/// Whether If-None-Match (RFC 9110, 13.1.2) names this tag. Proxies that recompress weaken it.
fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let known = headers.get_all(IF_NONE_MATCH).iter();
    known
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|tag| tag.trim().trim_start_matches("W/"))
        .any(|tag| tag == etag || tag == "*")
}
