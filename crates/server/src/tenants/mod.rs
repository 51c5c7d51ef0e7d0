//! What each tenant may send, and what it has sent.

mod bucket;
mod report;
mod series;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use candela_store::Clock;
use candela_store::Erased;

pub(crate) use self::report::tenants_json;
pub(crate) use self::report::write_tenant_metrics;
pub(crate) use self::series::SeriesKey;

use self::bucket::Pace;
use self::bucket::TokenBucket;
use self::series::ActiveSeries;
use crate::options::ServerOptions;
use crate::tenant_limits::TenantLimits;

/// The limits of all tenants and what they have used of them.
#[derive(Debug)]
pub(crate) struct Tenants {
    limits: TenantLimits,
    overrides: BTreeMap<String, TenantLimits>,
    clock: Arc<dyn Clock>,
    /// One lock for all: what happens under it takes microseconds, decoding a profile takes more.
    usage: Mutex<BTreeMap<String, Usage>>,
}

#[derive(Debug)]
struct Usage {
    bucket: TokenBucket,
    series: ActiveSeries,
    accepted: Accepted,
    erased: ErasedSums,
}

/// Tenants that are told apart. Where clients name their tenants themselves, each name they make up
/// would else stay in memory.
const MAX_TENANTS: usize = 10_000;

/// When a tenant beyond them may try again: when the server was started anew, or has room.
const FULL_RETRY_AFTER: Duration = Duration::from_secs(600);

/// What was taken of a tenant since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// Series of samples: one label set, type and window each.
    pub(crate) profiles: u64,
    pub(crate) samples: u64,
    /// Decompressed and with labels: what the rate counts.
    pub(crate) bytes: u64,
}

/// What was erased of a tenant since the start, by request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ErasedSums {
    pub(crate) requests: u64,
    pub(crate) profiles: u64,
    pub(crate) samples: u64,
}

/// What a tenant uses now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TenantUsage {
    pub(crate) series: usize,
    pub(crate) accepted: Accepted,
    pub(crate) erased: ErasedSums,
}

/// Something that time cures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exceeded {
    /// For counters.
    pub(crate) reason: &'static str,
    /// The limit by its name and value, and what to do.
    pub(crate) message: String,
    pub(crate) retry_after: Duration,
}

impl Tenants {
    pub(crate) fn new(options: &ServerOptions) -> Self {
        Self {
            limits: options.tenant_limits,
            overrides: options.tenant_overrides.clone(),
            clock: Arc::clone(&options.clock),
            usage: Mutex::default(),
        }
    }

    /// What a tenant may send.
    pub(crate) fn limits(&self, tenant: &str) -> TenantLimits {
        self.overrides.get(tenant).copied().unwrap_or(self.limits)
    }

    /// Takes note of a tenant before anything of it is counted.
    ///
    /// # Errors
    /// When there are too many.
    pub(crate) fn admit(&self, tenant: &str) -> Result<(), Exceeded> {
        let is_full = {
            let all = self.lock();
            all.len() >= MAX_TENANTS && !all.contains_key(tenant)
        };
        if is_full {
            return Err(Exceeded {
                reason: "too_many_tenants",
                message: format!(
                    "tenant {tenant} is one more than the {MAX_TENANTS} that have sent something \
                     since the start; send to a tenant that is there"
                ),
                retry_after: FULL_RETRY_AFTER,
            });
        }
        self.with_usage(tenant, self.clock.monotonic_ns(), |_| ());
        Ok(())
    }

    /// Whether a tenant may send anything now. Asked before a body is decoded, which is what
    /// refusing is to save; what it takes is known only then, see [`Tenants::charge`].
    ///
    /// # Errors
    /// When it has sent more than its rate.
    pub(crate) fn check_rate(&self, tenant: &str) -> Result<(), Exceeded> {
        let limits = self.limits(tenant);
        let now_ns = self.clock.monotonic_ns();
        let wait = self.with_usage(tenant, now_ns, |usage| {
            usage.bucket.wait(pace(&limits), now_ns)
        });
        let Some(retry_after) = wait else {
            return Ok(());
        };
        let message = format!(
            "tenant {tenant} has sent more than {} bytes a second with bursts of {} \
             (server.limits.ingest_rate, ingest_burst)",
            limits.ingest_rate.get(),
            limits.ingest_burst.get()
        );
        Err(Exceeded {
            reason: "rate_limited",
            message,
            retry_after,
        })
    }

    /// Counts the bytes of a request that was decoded, which the requests behind it wait for.
    pub(crate) fn charge(&self, tenant: &str, bytes: u64) {
        let limits = self.limits(tenant);
        let now_ns = self.clock.monotonic_ns();
        self.with_usage(tenant, now_ns, |usage| {
            usage.bucket.take(bytes, pace(&limits), now_ns);
            usage.accepted.bytes += bytes;
        });
    }

    /// Takes note of the series of one profile, of all or of none.
    ///
    /// # Errors
    /// When the tenant would then have more than it may.
    pub(crate) fn admit_series(&self, tenant: &str, keys: &[SeriesKey]) -> Result<(), Exceeded> {
        let limits = self.limits(tenant);
        let now_ns = self.clock.monotonic_ns();
        let admitted = self.with_usage(tenant, now_ns, |usage| {
            usage.series.admit(keys, limits.series.most(), now_ns)
        });
        admitted.map_err(|retry_after| {
            let message = format!(
                "tenant {tenant} has the {} active series that may be (server.limits.series): \
                 send fewer different labels, or raise the limit",
                limits.series.get()
            );
            Exceeded {
                reason: "series_limit",
                message,
                retry_after,
            }
        })
    }

    /// Counts what was stored.
    pub(crate) fn count_stored(&self, tenant: &str, profiles: u64, samples: u64) {
        let now_ns = self.clock.monotonic_ns();
        self.with_usage(tenant, now_ns, |usage| {
            usage.accepted.profiles += profiles;
            usage.accepted.samples += samples;
        });
    }

    /// Counts what was erased at somebody's request.
    pub(crate) fn count_erased(&self, tenant: &str, erased: &Erased) {
        let now_ns = self.clock.monotonic_ns();
        self.with_usage(tenant, now_ns, |usage| {
            usage.erased.requests += 1;
            usage.erased.profiles += erased.profiles;
            usage.erased.samples += erased.samples;
        });
    }

    /// The tenants that have sent something or have limits of their own.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.overrides.keys().cloned().collect();
        names.extend(self.lock().keys().cloned());
        names.sort();
        names.dedup();
        names
    }

    fn usage_of(&self, tenant: &str) -> TenantUsage {
        let now_ns = self.clock.monotonic_ns();
        let mut all = self.lock();
        let usage = all.get_mut(tenant);
        usage.map_or_else(TenantUsage::default, |usage| TenantUsage {
            series: usage.series.count(now_ns),
            accepted: usage.accepted,
            erased: usage.erased,
        })
    }

    fn with_usage<T>(&self, tenant: &str, now_ns: i64, work: impl FnOnce(&mut Usage) -> T) -> T {
        let mut all = self.lock();
        if let Some(usage) = all.get_mut(tenant) {
            return work(usage);
        }
        let usage = all.entry(tenant.to_owned()).or_insert_with(|| Usage {
            bucket: TokenBucket::new(pace(&self.limits(tenant)), now_ns),
            series: ActiveSeries::default(),
            accepted: Accepted::default(),
            erased: ErasedSums::default(),
        });
        work(usage)
    }

    /// Counters stay usable after a panic elsewhere: each update is complete in itself.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Usage>> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pace(limits: &TenantLimits) -> Pace {
    Pace {
        rate: limits.ingest_rate,
        burst: limits.ingest_burst,
    }
}
