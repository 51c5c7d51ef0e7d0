//! The profiles of one request on their way to the log: those that may be stored together, and why others may not.

use candela_formats::Report;
use candela_model::Profile;
use candela_model::SERVICE_NAME_LABEL;
use candela_store::Appended;

use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::auth::TenantName;
use crate::ingest::admission::admit;
use crate::ingest::append::append;
use crate::ingest::append::received_hash;
use crate::ingest::pushed_labels::in_error_of;
use crate::metrics::Ingested;
use crate::tenants::SeriesKey;

/// How many different refusals a message names.
const NAMED_REFUSALS: usize = 5;

/// What was read of one request.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    profile: Profile,
    /// How many series were read, and how often something could not be.
    series: usize,
    /// The positions of what may not be stored.
    left_out: Vec<u8>,
    refusals: Refusals,
}

/// Why parts of a request may not be stored.
#[derive(Debug, Default)]
struct Refusals {
    /// It decides the status.
    first: Option<ApiError>,
    /// Different ones, as many as an answer names.
    messages: Vec<String>,
    /// Whether there are others.
    has_more: bool,
}

/// What was stored of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) ingested: Ingested,
    /// Whether it was there already, as the same request came before.
    pub(crate) is_duplicate: bool,
}

impl Batch {
    /// Adds what may be stored of a profile that was read.
    pub(crate) fn add(
        &mut self,
        app: &App,
        tenant: &TenantName,
        profile: Profile,
        report: &mut Report,
    ) {
        let first = self.series;
        self.series += profile.series.len();
        let (left_out, refusals) = (&mut self.left_out, &mut self.refusals);
        let profile = admit(app, tenant, profile, report, |position, series, refusal| {
            left_out.extend((first + position).to_le_bytes());
            app.metrics.count_refused(tenant, refusal.reason, 1);
            let mut error = refusal.into_bad_request();
            error.message = format!("{}: {}", series.profile_type, error.message);
            refusals.add(in_error_of(series.labels.get(SERVICE_NAME_LABEL), error));
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
        self.left_out.extend(self.series.to_le_bytes());
        self.series += 1;
        self.refusals.add(error);
    }

    /// What may be stored.
    pub(crate) const fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Stores what may be stored, which comes in `bytes` and has the hash `received` in all.
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
    ) -> Result<Stored, ApiError> {
        let series = &self.profile.series;
        if series.is_empty() {
            return Ok(Stored::default());
        }
        let keys: Vec<SeriesKey> = series.iter().map(SeriesKey::of).collect();
        app.tenants
            .admit_series(tenant, &keys)
            .map_err(ApiError::exceeded)
            .inspect_err(|error| {
                let count = keys.len() as u64;
                app.metrics.count_refused(tenant, error.code, count);
            })?;
        let hash = self.stored_hash(received);
        let (ingested, appended) = append(app, tenant, way, self.profile, hash, bytes).await?;
        Ok(Stored {
            ingested,
            is_duplicate: appended == Appended::Duplicate,
        })
    }

    /// The hash of what is stored. That of a request which is taken in part says which part: all of it is something else,
    /// and may come again when all of it may be stored.
    fn stored_hash(&self, received: u128) -> u128 {
        if self.refusals.first.is_none() {
            return received;
        }
        let part = [&received.to_le_bytes()[..], &self.left_out].concat();
        received_hash("part", &[], &part)
    }

    /// Whether some of it may not be stored.
    pub(crate) const fn has_refusals(&self) -> bool {
        self.refusals.first.is_some()
    }

    /// What the client is told of what may not be stored.
    ///
    /// # Errors
    /// When that is something: the first refusal decides the status.
    pub(crate) fn outcome(&self) -> Result<(), ApiError> {
        let Some(first) = &self.refusals.first else {
            return Ok(());
        };
        let mut message = self.refusals.messages.join("; ");
        if self.refusals.has_more {
            message.push_str("; and more");
        }
        let stored = self.profile.series.len();
        if stored > 0 {
            message.push_str(&format!(
                "; {stored} other series of the request are stored"
            ));
        }
        Err(ApiError {
            message,
            ..first.clone()
        })
    }
}

impl Refusals {
    fn add(&mut self, error: ApiError) {
        if self.messages.contains(&error.message) {
            return;
        }
        if self.messages.len() == NAMED_REFUSALS {
            self.has_more = true;
            return;
        }
        self.messages.push(error.message.clone());
        self.first.get_or_insert(error);
    }
}
