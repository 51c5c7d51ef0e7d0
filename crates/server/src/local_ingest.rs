//! The way in for the agent of the same process.
//!
//! Its profiles obey the limits of their shape and number of series as everybody's do: those protect
//! the store, whoever fills it. They are not held to the rate. That is there to tell a client to
//! send later; what the kernel has counted cannot be counted later, and there is one such agent,
//! which sends once an interval and is bounded by its own budgets. What it sends does not take from
//! the rate of the tenant either.

use std::fmt;

use candela_formats::Report;
use candela_model::Profile;
use candela_store::AppendError;

use crate::app::SharedApp;
use crate::auth::TenantName;
use crate::ingest::admission::admit_each;

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
    pub async fn append(&self, profile: Profile) -> Result<(), AppendError> {
        let tenant = &self.tenant;
        let mut refused = Vec::new();
        let mut report = Report::default();
        let profile = admit_each(&self.app, tenant, profile, &mut report, |_, refusal| {
            refused.push(refusal.reason);
        });
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
        self.app.metrics.count_changes(tenant, &report.notes);
        for reason in refused {
            self.app.metrics.count_refused(tenant, reason, 1);
        }
        Ok(())
    }
}

impl fmt::Debug for LocalIngest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LocalIngest")
            .finish_non_exhaustive()
    }
}
