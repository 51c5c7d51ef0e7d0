//! How the agent is doing, as others see it.

use std::collections::BTreeMap;

use candela_unwind::WalkResult;
use serde::Serialize;

use crate::scrape::ScrapeStatus;
use crate::source::Missing;
use crate::status::CostStatus;
use crate::status::DeliveryStatus;
use crate::status::SourceStatus;
use crate::status::SymbolStatus;
use crate::window::RESULT_CODES;

/// Everything that the agent counts. Counts are totals since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AgentStatus {
    /// The agent's version.
    pub version: String,
    /// The host's name.
    pub host: String,
    /// Samples per second of a busy CPU, as somebody configured it; [`CostStatus`] has what the budget allows.
    pub rate_hz: u32,
    /// When the agent started, unix milliseconds.
    pub started_ms: i64,
    /// How the samples' stacks ended.
    pub quality: Quality,
    /// What did not make it, by reason; every reason is there.
    pub drops: BTreeMap<String, u64>,
    /// What came from the kernel by kind; every kind is there.
    pub events: BTreeMap<String, u64>,
    /// What the agent costs.
    pub cost: CostStatus,
    /// The source of samples.
    pub source: SourceStatus,
    /// Symbolization.
    pub symbols: SymbolStatus,
    /// Scraping.
    pub scrape: ScrapeStatus,
    /// Export.
    pub delivery: DeliveryStatus,
    /// What was asked for and cannot be had on this host.
    pub missing: Vec<Missing>,
    /// Why nothing is sampled any more; empty while all is well.
    pub failure: String,
}

/// Samples by how the walk of their stack ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Quality {
    /// All samples.
    pub samples: u64,
    /// Samples by result code; every code is there.
    pub results: BTreeMap<String, u64>,
}

// === impl Quality ===

impl Quality {
    pub(crate) fn from_results(results: &[u64; RESULT_CODES]) -> Self {
        let named = (0_u8..).zip(results).filter_map(|(code, &count)| {
            WalkResult::from_code(code).map(|result| (result.name().to_owned(), count))
        });
        Self {
            samples: results.iter().sum(),
            results: named.collect(),
        }
    }

    /// The share of user stacks that reach the thread's entry; 1 when there are none.
    #[must_use]
    pub fn complete_share(&self) -> f64 {
        let count = |result: WalkResult| self.results.get(result.name()).copied().unwrap_or(0);
        let with_user_stack = self.samples - count(WalkResult::KernelOnly).min(self.samples);
        if with_user_stack == 0 {
            return 1.0;
        }
        count(WalkResult::Complete) as f64 / with_user_stack as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_threads_do_not_count_as_incomplete() {
        let mut results = [0; RESULT_CODES];
        results[WalkResult::Complete as usize] = 9;
        results[WalkResult::BadRead as usize] = 1;
        results[WalkResult::KernelOnly as usize] = 90;
        let quality = Quality::from_results(&results);
        assert_eq!(quality.samples, 100);
        assert!((quality.complete_share() - 0.9).abs() < 1e-9);
        assert_eq!(quality.results["bad_read"], 1);
    }
}
