//! Profiles of one request on their way to the log, whichever of Pyroscope's ways they came.

use candela_formats::Report;
use candela_model::Profile;

use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::auth::TenantName;
use crate::ingest::append::append;
use crate::ingest::append::received_hash;
use crate::ingest::body::BodyBounds;
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
    /// How many series there are, those that may not be stored too.
    series: u32,
    /// Which of them may be stored.
    kept: Vec<u8>,
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
            let error = ApiError::bad_request("invalid_utf8", message);
            self.refuse(app, tenant, pushed.in_error(error), 1);
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
            let checked = check_series(series, &app.limits, &limits, keep, now_ns);
            self.series += 1;
            match checked {
                Ok(()) => {
                    self.kept.extend(self.series.to_le_bytes());
                    true
                }
                Err(refusal) => {
                    let mut error = refusal.into_bad_request();
                    error.message = format!("{}: {}", series.profile_type, error.message);
                    self.refuse(app, tenant, pushed.in_error(error), 1);
                    false
                }
            }
        });
        app.metrics.count_changes(tenant, &report.notes);
        // Most requests have one profile, and moving it saves a tenth of what it takes to store it.
        if self.profile.series.is_empty() {
            self.profile = profile;
        } else {
            self.profile.absorb(&profile);
        }
    }

    /// Counts `profiles` that may not be stored; the rest of the request is.
    pub(crate) fn refuse(
        &mut self,
        app: &App,
        tenant: &TenantName,
        error: ApiError,
        profiles: usize,
    ) {
        let count = profiles.max(1) as u64;
        app.metrics.count_refused(tenant, error.code, count);
        self.refused.push(error);
    }

    /// Stores what may be stored, which comes in `bytes` and has the hash `received` in all: of one
    /// that was taken in part, the hash tells of what was taken, as the whole of it is another when
    /// all of it may be stored.
    ///
    /// # Errors
    /// The store's, and the tenant's limit of series. Then nothing is stored, so that clients which
    /// send it again do not bring a part of it twice.
    pub(crate) async fn store(
        self,
        app: &SharedApp,
        tenant: &TenantName,
        way: &'static str,
        received: u128,
        bytes: u64,
    ) -> Result<(), ApiError> {
        let series = &self.profile.series;
        if series.is_empty() {
            return Ok(());
        }
        let keys: Vec<SeriesKey> = series.iter().map(SeriesKey::of).collect();
        app.tenants
            .admit_series(tenant, &keys)
            .map_err(ApiError::exceeded)
            .inspect_err(|error| {
                let count = keys.len() as u64;
                app.metrics.count_refused(tenant, error.code, count);
            })?;
        let hash = match self.refused.is_empty() {
            true => received,
            false => received_hash(
                "part",
                &[],
                &[&received.to_le_bytes()[..], &self.kept].concat(),
            ),
        };
        append(app, tenant, way, self.profile, hash, bytes).await?;
        Ok(())
    }

    /// What the client is told of what may not be stored.
    ///
    /// # Errors
    /// When that is something: the first refusal decides the status.
    pub(crate) fn outcome(&self) -> Result<(), ApiError> {
        let Some(first) = self.refused.first() else {
            return Ok(());
        };
        let mut told = first.clone();
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
        let stored = self.profile.series.len();
        if stored > 0 {
            told.message.push_str(&format!(
                "; {stored} other series of the request are stored"
            ));
        }
        Err(told)
    }
}
