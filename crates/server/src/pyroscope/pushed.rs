//! Profiles of one request on their way to the log, whichever of Pyroscope's ways they came.

use axum::http::StatusCode;
use candela_formats::Report;
use candela_model::Profile;

use crate::api_error::ApiError;
use crate::app::App;
use crate::auth::TenantName;
use crate::ingest::append::received_hash;
use crate::ingest::body::BodyBounds;
use crate::ingest::limits::Refusal;
use crate::ingest::limits::check_series;
use crate::ingest::read::read_options;
use crate::pyroscope::labels::PushedLabels;
use crate::tenants::SeriesKey;

/// The note of readers on text that is none.
const REPAIRED_STRINGS: &str = "strings_repaired";
/// How many different refusals a message names.
const NAMED_REFUSALS: usize = 5;

/// What is read of one request: what may be stored together, and what may not.
#[derive(Debug, Default)]
pub(crate) struct Pushed {
    pub(crate) profile: Profile,
    refused: Vec<ApiError>,
}

impl Pushed {
    /// Takes a profile that was read: as it is usual, and without the series that may not be
    /// stored. One without samples is no error: idle programs send those.
    pub(crate) fn add(
        &mut self,
        app: &App,
        tenant: &TenantName,
        pushed: &PushedLabels,
        profile: Profile,
        mut report: Report,
    ) {
        // A name of which a part is lost is another name. Who pushes can mend it, and Pyroscope's
        // clients are used to that.
        if report.count(REPAIRED_STRINGS) > 0 {
            let count = report.count(REPAIRED_STRINGS);
            let message = format!("{count} strings of the profile are not UTF-8");
            self.refuse(app, tenant, ApiError::bad_request("invalid_utf8", message));
            return;
        }
        let limits = app.tenants.limits(tenant);
        let bounds = read_options(app, &limits, BodyBounds::profile(&limits)).limits;
        let options = pushed.normalization(bounds);
        let mut profile = candela_formats::normalize(profile, &options, &mut report);
        profile.series.retain(|series| !series.samples.is_empty());
        let now_ns = app.clock.now_ns();
        profile.series.retain(|series| {
            let keep = app.keep_of(tenant, series);
            let checked = check_series(series, &app.limits, &limits, keep, now_ns)
                .map_err(Refusal::into_bad_request);
            let admitted = checked.and_then(|()| {
                let keys = [SeriesKey::of(series)];
                let admitted = app.tenants.admit_series(tenant, &keys);
                admitted.map_err(ApiError::exceeded)
            });
            match admitted {
                Ok(()) => true,
                Err(error) => {
                    self.refuse(app, tenant, error);
                    false
                }
            }
        });
        app.metrics.count_changes(tenant, &report.notes);
        self.profile.absorb(&profile);
    }

    /// What tells these profiles from those of another request: of one that was taken in part, what
    /// was taken. The whole of it, sent again when all of it may be stored, is another.
    pub(crate) fn hash(&self, received: u128) -> u128 {
        if self.refused.is_empty() {
            return received;
        }
        // Without times: those of profiles that have none are those of their coming.
        let stored = self.profile.series.iter();
        let stored = stored.map(|series| format!("{}{}", series.profile_type, series.labels));
        let stored: Vec<String> = stored.collect();
        let stored: Vec<&str> = stored.iter().map(String::as_str).collect();
        received_hash("part", &stored, &received.to_le_bytes())
    }

    /// Counts what may not be stored; the rest of the request is.
    pub(crate) fn refuse(&mut self, app: &App, tenant: &TenantName, error: ApiError) {
        app.metrics.count_refused(tenant, error.code, 1);
        self.refused.push(error);
    }

    /// What the client is told when the rest is stored. Nothing of that is cured by time: what is
    /// stored must not come again, and clients repeat the whole of what they may repeat.
    ///
    /// # Errors
    /// As [`Self::whole`].
    pub(crate) fn outcome(&self) -> Result<(), ApiError> {
        self.whole().map_err(|mut told| {
            if told.retry_after.is_some() && !self.profile.series.is_empty() {
                told.status = StatusCode::BAD_REQUEST;
                told.retry_after = None;
            }
            told
        })
    }

    /// What the client is told when nothing is stored unless all of it is.
    ///
    /// # Errors
    /// Of several refusals the first decides the status, unless one of them is cured by time: then
    /// the client is to send all of it again.
    pub(crate) fn whole(&self) -> Result<(), ApiError> {
        let Some(first) = self.refused.first() else {
            return Ok(());
        };
        let temporary = self
            .refused
            .iter()
            .find(|error| error.retry_after.is_some());
        let mut told = temporary.unwrap_or(first).clone();
        let mut messages: Vec<&str> = Vec::new();
        for error in &self.refused {
            if !messages.contains(&error.message.as_str()) {
                messages.push(&error.message);
            }
        }
        let left_out = messages.len().saturating_sub(NAMED_REFUSALS);
        messages.truncate(NAMED_REFUSALS);
        told.message = messages.join("; ");
        if left_out > 0 {
            told.message.push_str(&format!("; and {left_out} more"));
        }
        Err(told)
    }
}
