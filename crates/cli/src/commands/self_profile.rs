//! `/debug/pprof/profile`: the process records itself with its own recorder.

use std::sync::Arc;

use candela_server::SelfProfiler;

/// How this build profiles itself.
#[cfg(not(feature = "agent"))]
pub(crate) fn profiler() -> Option<Arc<dyn SelfProfiler>> {
    None
}

/// How this build profiles itself.
#[cfg(feature = "agent")]
pub(crate) fn profiler() -> Option<Arc<dyn SelfProfiler>> {
    Some(Arc::new(OwnRecorder::default()))
}

/// Samples the own process at 99 Hz.
#[cfg(feature = "agent")]
#[derive(Default)]
struct OwnRecorder {
    /// Set when the server ends: a profile may take minutes, which no supervisor waits.
    stop: Arc<std::sync::atomic::AtomicBool>,
}

#[cfg(feature = "agent")]
impl SelfProfiler for OwnRecorder {
    fn cpu_profile(&self, duration: std::time::Duration) -> Result<Vec<u8>, String> {
        let targets = candela_agent::RecordTargets::Pids(vec![std::process::id()]);
        let options = candela_agent::RecordOptions {
            duration: Some(duration),
            stop: Arc::clone(&self.stop),
            ..candela_agent::RecordOptions::new(targets)
        };
        let recording = candela_agent::record(options, || {}).map_err(|error| error.to_string())?;
        let mut bytes = Vec::new();
        candela_formats::write_pprof(
            &recording.profile,
            &mut bytes,
            &candela_formats::PprofOptions::default(),
        )
        .map_err(|error| error.to_string())?;
        Ok(bytes)
    }

    fn stop(&self) {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}
