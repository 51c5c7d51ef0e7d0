//! What the binary gives to a server, so that the server depends on no agent.

use std::time::Duration;

/// The agent in the same process, as far as the server shows it.
pub trait StatusSource: Send + Sync {
    /// A JSON object for `/api/v1/status`, where it appears under `agent`. Its `host`, `version`,
    /// `quality` (`{"samples": N, "results": {CODE: N}}`) and `drops` (`{REASON: N}`) also join
    /// those of the server. `null` as long as no agent runs.
    fn status_json(&self) -> serde_json::Value;

    /// Appends lines in the Prometheus text format, each family with its `# TYPE` line.
    fn metrics(&self, out: &mut String);
}

/// How this process profiles itself.
pub trait SelfProfiler: Send + Sync {
    /// A gzipped pprof of the CPU time of this process over `duration`, which the call takes. It
    /// runs on a thread that may block.
    ///
    /// # Errors
    /// Why there is none, in one line for the user.
    fn cpu_profile(&self, duration: Duration) -> Result<Vec<u8>, String>;

    /// Ends a profile in progress with what it has, and those that would start later at once. The
    /// server calls it when it ends, so that nobody waits for a profile of minutes.
    fn stop(&self) {}
}
