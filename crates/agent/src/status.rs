//! How the agent is doing: plain values for `/api/v1/status` and text for `/metrics`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use candela_unwind::WalkResult;
use serde::Serialize;

use crate::export::Vitals;
use crate::ledger::Ledger;
use crate::scrape::ScrapeStatus;
use crate::window::RESULT_CODES;

/// The version of this crate, which is the agent's.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Everything that the agent counts. Counts are totals since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AgentStatus {
    /// The agent's version.
    pub version: String,
    /// The host's name.
    pub host: String,
    /// Samples per second of a busy CPU.
    pub rate_hz: u32,
    /// When the agent started, unix milliseconds.
    pub started_ms: i64,
    /// How the samples' stacks ended.
    pub quality: Quality,
    /// What did not make it, by reason; every reason is there.
    pub drops: BTreeMap<String, u64>,
    /// The source of samples.
    pub source: SourceStatus,
    /// Symbolization.
    pub symbols: SymbolStatus,
    /// Scraping.
    pub scrape: ScrapeStatus,
    /// Export.
    pub delivery: DeliveryStatus,
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

/// The state of the source of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SourceStatus {
    /// Samples taken in the kernel.
    pub kernel_samples: u64,
    /// Samples that came with a stack copy.
    pub stack_copies: u64,
    /// CPUs sampled now.
    pub cpus: usize,
    /// Processes whose mappings the kernel has.
    pub kernel_processes: u32,
    /// Their mappings.
    pub kernel_regions: u32,
    /// Processes known now.
    pub processes: usize,
    /// Object files open now.
    pub objects: usize,
    /// Different build ids known now.
    pub unwind_tables: usize,
    /// Unwind tables in the kernel now.
    pub kernel_tables: u32,
    /// Kernel memory of unwind tables, bytes.
    pub kernel_table_bytes: u64,
    /// Kernel memory of all other BPF maps, bytes.
    pub kernel_other_bytes: u64,
}

/// The state of symbolization.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SymbolStatus {
    /// Windows symbolized.
    pub windows: u64,
    /// Places named.
    pub named_frames: u64,
    /// Places that nothing names.
    pub unnamed_frames: u64,
    /// Answers from memory.
    pub cache_hits: u64,
    /// Answers that had to be looked up.
    pub cache_misses: u64,
    /// Memory of the symbol cache, bytes.
    pub cache_bytes: u64,
}

/// The state of export.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeliveryStatus {
    /// The sink: `in-process` or the server's address.
    pub exporter: String,
    /// Profiles that the sink has taken.
    pub profiles: u64,
    /// Their samples; those of profiles that had waited on disk are not counted.
    pub samples: u64,
    /// Attempts that failed and will be repeated.
    pub failed_attempts: u64,
    /// Why the last attempt failed; empty when it did not.
    pub last_error: String,
    /// Profiles waiting on disk.
    pub spooled_profiles: u64,
    /// Their size, bytes.
    pub spooled_bytes: u64,
}

/// The parts of the status, each kept by the thread that it is about.
#[derive(Debug)]
pub(crate) struct StatusBoard {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) started_ms: i64,
    /// The host as its series call it.
    host: String,
    parts: Mutex<Parts>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    pub(crate) results: [u64; RESULT_CODES],
    pub(crate) source: SourceStatus,
    pub(crate) symbols: SymbolStatus,
    pub(crate) scrape: ScrapeStatus,
    pub(crate) delivery: DeliveryStatus,
    pub(crate) failure: String,
}

// === impl StatusBoard ===

impl Default for StatusBoard {
    fn default() -> Self {
        Self {
            ledger: Arc::default(),
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
        Vitals {
            version: VERSION.to_owned(),
            host: self.host.clone(),
            started_ms: self.started_ms,
            results: Quality::from_results(&self.parts().results).results,
            drops: self.drops(),
        }
    }

    pub(crate) fn drops(&self) -> BTreeMap<String, u64> {
        let drops = self.ledger.snapshot().into_iter();
        drops
            .map(|(reason, count)| (reason.to_owned(), count))
            .collect()
    }
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

// === impl AgentStatus ===

impl AgentStatus {
    /// Appends the counts in the Prometheus text format.
    pub fn write_metrics(&self, out: &mut String) {
        family(
            out,
            "candela_agent_samples_total",
            "counter",
            "Samples by how the walk of their stack ended.",
        );
        for (result, count) in &self.quality.results {
            sample(
                out,
                "candela_agent_samples_total",
                &format!("{{result=\"{result}\"}}"),
                *count,
            );
        }
        family(
            out,
            "candela_agent_drops_total",
            "counter",
            "What did not make it, by reason.",
        );
        for (reason, count) in &self.drops {
            sample(
                out,
                "candela_agent_drops_total",
                &format!("{{reason=\"{reason}\"}}"),
                *count,
            );
        }
        let source = &self.source;
        let symbols = &self.symbols;
        let delivery = &self.delivery;
        let rows = [
            (
                "kernel_samples_total",
                "counter",
                "Samples taken in the kernel.",
                source.kernel_samples,
            ),
            (
                "stack_copies_total",
                "counter",
                "Samples that came with a stack copy.",
                source.stack_copies,
            ),
            (
                "processes",
                "gauge",
                "Processes known.",
                source.processes as u64,
            ),
            (
                "objects",
                "gauge",
                "Object files open.",
                source.objects as u64,
            ),
            ("cpus", "gauge", "CPUs sampled.", source.cpus as u64),
            (
                "kernel_processes",
                "gauge",
                "Processes whose mappings the kernel has.",
                u64::from(source.kernel_processes),
            ),
            (
                "kernel_regions",
                "gauge",
                "Mappings that the kernel has.",
                u64::from(source.kernel_regions),
            ),
            (
                "kernel_tables",
                "gauge",
                "Unwind tables in the kernel.",
                u64::from(source.kernel_tables),
            ),
            (
                "kernel_table_bytes",
                "gauge",
                "Kernel memory of unwind tables.",
                source.kernel_table_bytes,
            ),
            (
                "kernel_other_bytes",
                "gauge",
                "Kernel memory of all other BPF maps.",
                source.kernel_other_bytes,
            ),
            (
                "named_frames_total",
                "counter",
                "Places named.",
                symbols.named_frames,
            ),
            (
                "unnamed_frames_total",
                "counter",
                "Places that nothing names.",
                symbols.unnamed_frames,
            ),
            (
                "symbol_cache_bytes",
                "gauge",
                "Memory of the symbol cache.",
                symbols.cache_bytes,
            ),
            (
                "exported_profiles_total",
                "counter",
                "Profiles that the sink has taken.",
                delivery.profiles,
            ),
            (
                "export_failures_total",
                "counter",
                "Attempts to export that failed.",
                delivery.failed_attempts,
            ),
            (
                "spooled_profiles",
                "gauge",
                "Profiles waiting on disk.",
                delivery.spooled_profiles,
            ),
            (
                "spooled_bytes",
                "gauge",
                "Size of the profiles waiting on disk.",
                delivery.spooled_bytes,
            ),
        ];
        for (name, kind, help, value) in rows {
            let name = format!("candela_agent_{name}");
            family(out, &name, kind, help);
            sample(out, &name, "", value);
        }
        self.scrape.write_metrics(out);
    }
}

fn unix_ms() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    let written = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    written.expect("writing to a string cannot fail");
}

fn sample(out: &mut String, name: &str, labels: &str, value: u64) {
    writeln!(out, "{name}{labels} {value}").expect("writing to a string cannot fail");
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

    #[test]
    fn every_metric_has_help_and_type() {
        let board = StatusBoard::default();
        let status = AgentStatus {
            drops: board.drops(),
            quality: Quality::from_results(&board.parts().results),
            ..AgentStatus::default()
        };
        let mut text = String::new();
        status.write_metrics(&mut text);
        assert!(text.contains("candela_agent_drops_total{reason=\"spool_full\"} 0"));
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(['{', ' ']).next().expect("a name");
            assert!(text.contains(&format!("# TYPE {name} ")), "{name}");
        }
    }
}
