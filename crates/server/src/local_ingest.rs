//! The way in for the agent of the same process.
//!
//! Its profiles obey the limits of their shape and number of series as everybody's do: those protect
//! the store, whoever fills it. They are not held to the rate. That is there to tell a client to
//! send later; what the kernel has counted cannot be counted later, and there is one such agent,
//! which sends once an interval and is bounded by its own budgets. What it sends does not take from
//! the rate of the tenant either.

use std::fmt;

use candela_model::Profile;
use candela_store::AppendError;

use crate::app::SharedApp;
use crate::auth::TenantName;
use crate::ingest::limits::check_series;
use crate::tenants::SeriesKey;

/// Stores what the same process measures.
#[derive(Clone)]
pub struct LocalIngest {
    app: SharedApp,
    tenant: TenantName,
}

impl LocalIngest {
    pub(crate) fn new(app: SharedApp) -> Self {
        let tenant = TenantName::anonymous();
        Self { app, tenant }
    }

    /// The same for another tenant than `anonymous`.
    #[must_use]
    pub fn of_tenant(mut self, tenant: TenantName) -> Self {
        self.tenant = tenant;
        self
    }

    /// Stores a profile; when this returns, what was not beyond a limit is durable. What was is left
    /// out and counted by reason, in `/api/v1/status` and `/metrics`.
    ///
    /// # Errors
    /// The store's; nothing is stored then.
    pub async fn append(&self, mut profile: Profile) -> Result<(), AppendError> {
        let tenant = &*self.tenant;
        let refused = self.leave_out_refused(tenant, &mut profile);
        if !profile.series.is_empty() {
            let profiles = profile.series.len() as u64;
            let samples = profile.sample_count() as u64;
            let arrivals = &self.app.arrivals;
            let announcement = arrivals.announcement(tenant, &profile);
            self.app.store.append(tenant, profile).await?;
            self.app.tenants.count_stored(tenant, profiles, samples);
            arrivals.tell(announcement);
        }
        // Not before: after an error all of it comes again.
        for reason in refused {
            self.app.metrics.count_refused(tenant, reason, 1);
        }
        Ok(())
    }

    /// The reasons, one for each series that was taken out.
    fn leave_out_refused(&self, tenant: &str, profile: &mut Profile) -> Vec<&'static str> {
        let limits = self.app.tenants.limits(tenant);
        let now_ns = self.app.clock.now_ns();
        let mut refused = Vec::new();
        profile.series.retain(|series| {
            let keep = self.app.keep_of(tenant, series);
            let shape = check_series(series, &self.app.limits, &limits, keep, now_ns);
            let shape = shape.map_err(|refusal| refusal.reason);
            let admitted = shape.and_then(|()| {
                let admitted = self
                    .app
                    .tenants
                    .admit_series(tenant, &[SeriesKey::of(series)]);
                admitted.map_err(|exceeded| exceeded.reason)
            });
            match admitted {
                Ok(()) => true,
                Err(reason) => {
                    refused.push(reason);
                    false
                }
            }
        });
        refused
    }
}

impl fmt::Debug for LocalIngest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LocalIngest")
            .finish_non_exhaustive()
    }
}
