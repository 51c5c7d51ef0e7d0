//! Where the agent's threads write down how they are doing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use crate::cost::ThreadClocks;
use crate::cost::resident_bytes;
use crate::export::Vitals;
use crate::ledger::Ledger;
use crate::scrape::ScrapeStatus;
use crate::source::Missing;
use crate::status::CostStatus;
use crate::status::DeliveryStatus;
use crate::status::Quality;
use crate::status::SourceStatus;
use crate::status::SymbolStatus;
use crate::status::VERSION;
use crate::window::RESULT_CODES;

/// The parts of the status, each kept by the thread that it is about.
#[derive(Debug)]
pub(crate) struct StatusBoard {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) clocks: Arc<ThreadClocks>,
    pub(crate) started_ms: i64,
    /// The host as its series call it.
    host: String,
    parts: Mutex<Parts>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    pub(crate) results: [u64; RESULT_CODES],
    pub(crate) events: BTreeMap<String, u64>,
    /// As of the last window; [`StatusBoard::cost`] has it as of now.
    pub(crate) cost: CostStatus,
    pub(crate) source: SourceStatus,
    pub(crate) symbols: SymbolStatus,
    pub(crate) scrape: ScrapeStatus,
    pub(crate) delivery: DeliveryStatus,
    pub(crate) missing: Vec<Missing>,
    pub(crate) failure: String,
}

// === impl StatusBoard ===

impl Default for StatusBoard {
    fn default() -> Self {
        Self {
            ledger: Arc::default(),
            clocks: Arc::default(),
            started_ms: unix_ms(),
            host: String::new(),
            parts: Mutex::default(),
        }
    }
}

impl StatusBoard {
    pub(crate) fn of_host(host: &str) -> Self {
        Self {
            host: host.to_owned(),
            ..Self::default()
        }
    }

    /// The parts, to read or to change. Held for a moment only.
    pub(crate) fn parts(&self) -> MutexGuard<'_, Parts> {
        // A panic while the lock is held leaves old numbers behind, which is no harm.
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes why the agent cannot go on.
    pub(crate) fn fail(&self, reason: String) {
        tracing::error!(reason, "the agent has failed");
        self.parts().failure = reason;
    }

    pub(crate) fn add_results(&self, results: &[u64; RESULT_CODES]) {
        let mut parts = self.parts();
        for (total, added) in parts.results.iter_mut().zip(results) {
            *total += added;
        }
    }

    /// What a receiver is told with each profile.
    pub(crate) fn vitals(&self) -> Vitals {
        // On its own: a lock that is held for the whole expression below would be asked for twice in it.
        let (results, events, missing) = {
            let parts = self.parts();
            let results = Quality::from_results(&parts.results).results;
            (results, parts.events.clone(), parts.missing.clone())
        };
        let cost = self.cost();
        Vitals {
            version: VERSION.to_owned(),
            host: self.host.clone(),
            started_ms: self.started_ms,
            results,
            drops: self.drops(),
            cost: cost.figures(),
            programs: cost.programs,
            events,
            missing,
        }
    }

    /// What the agent costs as of now.
    pub(crate) fn cost(&self) -> CostStatus {
        let (mut cost, source, symbols) = {
            let parts = self.parts();
            (parts.cost.clone(), parts.source, parts.symbols)
        };
        let threads = self.clocks.times().into_iter();
        cost.threads = threads
            .map(|(name, time_ns)| (name.to_owned(), time_ns))
            .collect();
        cost.cpu_ns = cost.threads.values().sum::<u64>() + cost.programs_ns();
        cost.resident_bytes = resident_bytes();
        cost.map_bytes = source.kernel_table_bytes + source.kernel_other_bytes;
        cost.symbol_cache_hits = symbols.cache_hits;
        cost.symbol_cache_misses = symbols.cache_misses;
        cost
    }

    pub(crate) fn drops(&self) -> BTreeMap<String, u64> {
        let drops = self.ledger.snapshot().into_iter();
        drops
            .map(|(reason, count)| (reason.to_owned(), count))
            .collect()
    }
}

fn unix_ms() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
