//! A profile file that was read.

use std::fmt;
use std::str::FromStr;

use axum::http::StatusCode;
use candela_formats::Format;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::unasked_type;
use candela_model::Profile;
use candela_model::ProfileType;
use candela_store::LooseProfiles;
use candela_store::TimeRange;

use crate::api_error::ApiError;
use crate::app::App;
use crate::auth::TenantName;
use crate::ingest::append::received_hash;
use crate::ingest::body::BodyBounds;
use crate::ingest::limits::check_series;
use crate::ingest::read::inflated;
use crate::ingest::read::read_error;
use crate::ingest::read::read_options;
use crate::ingest::taken_formats::taken_format;
use crate::profile_range::range_of;
use crate::tenant_limits::TenantLimits;

/// The content of a file as a number, by which it is asked for again.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FileId(u128);

/// A text that is no id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoFileId;

/// What is known of a file, and its profiles.
#[derive(Debug)]
pub(super) struct OpenedFile {
    pub(super) id: FileId,
    /// As it was sent.
    pub(super) bytes: u64,
    pub(super) format: Format,
    pub(super) profiles: LooseProfiles,
    /// One for each series and window.
    pub(super) profile_count: u64,
    pub(super) samples: u64,
    /// From the first start to the last end, so that what starts at that end is in it.
    pub(super) range: TimeRange,
    /// What is shown where nobody asks.
    pub(super) default_type: Option<ProfileType>,
    /// What was repaired and what was left out.
    pub(super) report: Report,
}

impl FileId {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(received_hash("file", &[], bytes))
    }
}

impl OpenedFile {
    /// # Errors
    /// As those of an upload, but for what depends on its time, which does not matter here.
    pub(super) fn read(app: &App, tenant: &TenantName, bytes: &[u8]) -> Result<Self, ApiError> {
        let limits = app.tenants.limits(tenant);
        let bounds = BodyBounds::profile(&limits);
        if bytes.is_empty() {
            let message = "the file is empty";
            return Err(ApiError::bad_request("empty_body", message));
        }
        bounds.check(bytes)?;
        let inflated = inflated(bytes, bounds).map_err(or_hint)?;
        let format = taken_format(&inflated)?;
        let options = ReadOptions {
            // What says nothing of its time has none: it would be another one with each request.
            now_ns: 0,
            ..read_options(app, &limits, bounds)
        };
        let read = candela_formats::read(format, &inflated[..], &options);
        let (profile, report) = read.map_err(|error| told_format(read_error(&error), format))?;
        check(app, &limits, &profile).map_err(|error| told_format(error, format))?;
        let profiles = LooseProfiles::of(&profile).map_err(|error| {
            let error = ApiError::bad_request("invalid_profile", error.to_string());
            told_format(error, format)
        })?;
        Ok(Self {
            id: FileId::of(bytes),
            bytes: bytes.len() as u64,
            format,
            profiles,
            profile_count: profile.series.len() as u64,
            samples: profile.sample_count() as u64,
            range: range_of(&profile),
            default_type: unasked_type(&profile, report.default_sample_type.as_deref()),
            // Nobody asks what an agent said of itself.
            report: Report {
                agents: Vec::new(),
                ..report
            },
        })
    }
}

/// Whoever dropped a file wants to know what it was taken for.
fn told_format(error: ApiError, format: Format) -> ApiError {
    let message = format!("the file is taken for {}: {}", format.name(), error.message);
    or_hint(ApiError { message, ..error })
}

/// What helps with a damaged file, where nothing better is known.
fn or_hint(error: ApiError) -> ApiError {
    if !error.hint.is_empty() {
        return error;
    }
    error.hint(
        "get the file again from where it came from; `candela formats` lists what can be read",
    )
}

/// The limits of an upload. How old a file is and what its clock says is no reason not to look at it.
fn check(app: &App, limits: &TenantLimits, profile: &Profile) -> Result<(), ApiError> {
    for series in &profile.series {
        let checked = check_series(series, &app.limits, limits, None, series.start_ns);
        checked.map_err(|refusal| {
            ApiError::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                refusal.reason,
                refusal.message,
            )
        })?;
    }
    Ok(())
}

impl fmt::Display for FileId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", self.0)
    }
}

impl fmt::Debug for FileId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl FromStr for FileId {
    type Err = NoFileId;

    fn from_str(text: &str) -> Result<Self, NoFileId> {
        let is_hexadecimal = text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if text.len() != 32 || !is_hexadecimal {
            return Err(NoFileId);
        }
        u128::from_str_radix(text, 16)
            .map(Self)
            .map_err(|_| NoFileId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_way_to_be_written() {
        let id = FileId::of(b"a profile");
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_ne!(id, FileId::of(b"another"));
        let upper = id.to_string().to_uppercase();
        for text in ["", "0", "+0000000000000000000000000000000", &upper] {
            assert_eq!(text.parse::<FileId>(), Err(NoFileId), "{text}");
        }
    }
}
