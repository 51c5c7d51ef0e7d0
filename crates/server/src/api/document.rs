//! Answers that are documents of their own: pictures and pages, which are kept and sent around.

use std::io::Write;

use axum::http::StatusCode;
use candela_formats::Orientation;
use candela_formats::WriteError;
use candela_query::Query;

use crate::api_error::ApiError;
use crate::parameters::Parameters;
use crate::reply::Reply;
use crate::window::OFFLINE_PAGE;

/// A document brings its own script; in a sandbox it has no origin and reaches nothing. The search of
/// a picture asks with a dialog, which a sandbox calls a modal.
const SECURITY: &str = "sandbox allow-scripts allow-modals; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'";

pub(crate) fn picture<W>(source_bytes: usize, writing: W) -> Reply
where
    W: FnOnce(&mut dyn Write) -> Result<(), WriteError> + Send + 'static,
{
    Reply::written("image/svg+xml", source_bytes, writing).content_security_policy(SECURITY)
}

pub(crate) fn page<W>(query: &Query, source_bytes: usize, writing: W) -> Reply
where
    W: FnOnce(&mut dyn Write) -> Result<(), WriteError> + Send + 'static,
{
    Reply::written("text/html; charset=utf-8", source_bytes, writing)
        .content_security_policy(SECURITY)
        .file_name(&file_name(query, "html"))
}

/// Tells service, type and time apart in a folder of downloads: a browser takes it before what the page
/// that links to the file calls it.
pub(crate) fn file_name(query: &Query, extension: &str) -> String {
    let service = query.selector.required_value("service_name");
    let profile_type = query.profile_type.split(':').next().unwrap_or_default();
    let begin = candela_formats::utc(query.range.from_ns);
    let minute = begin.get(..16).unwrap_or(&begin);
    let minute = minute.replace(' ', "T").replace(':', "");
    let stem = format!("{}-{profile_type}-{minute}", service.unwrap_or("candela"));
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "_.-".contains(it);
    let stem = stem.replace(|it| !is_plain(it), "_");
    format!("{stem}.{extension}")
}

/// The window's page without profiles.
///
/// # Errors
/// 501 where the build has none.
pub(crate) fn page_template() -> Result<&'static str, ApiError> {
    OFFLINE_PAGE.ok_or_else(|| {
        let message = "this build has no window, and so no page to put a profile into";
        ApiError::new(StatusCode::NOT_IMPLEMENTED, "no_window", message)
            .hint("build the window first: cargo xtask ui; or ask for format=svg")
    })
}

/// Which way the stacks of a picture grow: the parameter `orientation`.
///
/// # Errors
/// 400 with what is known.
pub(crate) fn orientation_of(parameters: &Parameters) -> Result<Orientation, ApiError> {
    match parameters.one("orientation") {
        None | Some("icicle") => Ok(Orientation::Icicle),
        Some("flame") => Ok(Orientation::Flame),
        Some(other) => {
            let message = format!("orientation: {other:?} is not known");
            Err(ApiError::bad_request("bad_choice", message).hint("known: icicle, flame"))
        }
    }
}
