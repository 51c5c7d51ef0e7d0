//! The engine that needs nothing installed.

use std::time::Duration;

use candela_agent::AgentOptions;
use candela_fleet::TraceConfig;
use candela_fleet::trace_config::SnapshotTrigger;
use candela_model::Profile;

use crate::error::DaemonError;
use crate::perfetto::engine::TraceEngine;
use crate::perfetto::engine::WantedSnapshot;
use crate::perfetto::packets::trigger_packet;
use crate::perfetto::plan::samples_wanted;
use crate::perfetto::ring::Ring;
use crate::perfetto::sampling::Sampling;
use crate::perfetto::scheduling::Scheduling;

/// Our own rings, filled by the agent's sampler and by the scheduler's switches.
#[derive(Debug)]
pub(crate) struct NativeEngine {
    sampling: Option<Sampling>,
    scheduling: Option<Scheduling>,
    /// One for each buffer of the configuration.
    rings: Vec<Ring>,
    /// Which the switches go to.
    scheduling_ring: usize,
    trigger: SnapshotTrigger,
}

impl NativeEngine {
    /// # Errors
    /// [`DaemonError::Impossible`] for what only Perfetto's own programs do, and what stands in the way of sampling.
    pub(crate) fn start(config: &TraceConfig, base: &AgentOptions) -> Result<Self, DaemonError> {
        tell_what_is_left_out(config);
        let sampling = match samples_wanted(config)? {
            Some(source) => Some(Sampling::start(source, base)?),
            None => None,
        };
        let scheduling_ring = config.scheduling_buffer as usize;
        let rings = config.buffers.iter().map(|buffer| {
            let bytes = u64::from(buffer.size_kb) * 1024;
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            Ring::new(bytes, buffer.fill_policy)
        });
        let rings: Vec<Ring> = rings.collect();
        let scheduling = match config.wants_scheduling {
            true => {
                let room = rings.get(scheduling_ring).map_or(0, Ring::most_bytes);
                Some(Scheduling::start(room)?)
            }
            false => None,
        };
        Ok(Self {
            sampling,
            scheduling,
            rings,
            scheduling_ring,
            trigger: config.trigger.clone(),
        })
    }

    fn add(&mut self, window: &Profile) {
        let Some(sampling) = &self.sampling else {
            return;
        };
        if let Some(scheduling) = &mut self.scheduling {
            scheduling.learn_names(window);
        }
        let Some(ring) = self.rings.get_mut(sampling.buffer()) else {
            return;
        };
        match sampling.packets(window) {
            Ok(packets) => ring.push(packets),
            Err(error) => {
                tracing::error!(%error, "a window is not in the ring");
                ring.overwritten += 1;
            }
        }
    }

    /// Takes what the kernel has recorded of switches; all that there is of it with `is_last`.
    fn add_switches(&mut self, is_last: bool) -> Result<(), DaemonError> {
        let ring = self.rings.get_mut(self.scheduling_ring);
        match (&mut self.scheduling, ring) {
            (Some(scheduling), Some(ring)) => {
                scheduling.collect(is_last, &mut |packets| ring.push(packets))
            }
            _ => Ok(()),
        }
    }

    /// Until when everything that happened is in the ring, nanoseconds since the epoch.
    fn recorded_until_ns(&self) -> i64 {
        // Switches are there at each turn, windows of samples later.
        match (&self.sampling, &self.scheduling) {
            (Some(sampling), _) => sampling.recorded_until_ns(),
            (None, Some(scheduling)) => scheduling.recorded_until_ns(),
            (None, None) => 0,
        }
    }
}

impl TraceEngine for NativeEngine {
    fn turn(&mut self, timeout: Duration) -> Result<(), DaemonError> {
        let window = match &mut self.sampling {
            Some(sampling) => sampling.next(timeout)?,
            None => {
                std::thread::park_timeout(timeout);
                None
            }
        };
        if let Some(window) = window {
            self.add(&window);
        }
        self.add_switches(false)
    }

    fn is_recording(&self) -> bool {
        true
    }

    fn trigger(&mut self, _: &WantedSnapshot) -> Result<(), DaemonError> {
        Ok(())
    }

    fn is_whole(&self, wanted: &WantedSnapshot) -> bool {
        self.recorded_until_ns() >= wanted.until_ns
    }

    fn snapshot(&mut self, wanted: &WantedSnapshot) -> Result<Vec<u8>, DaemonError> {
        self.add_switches(true)?;
        let overwritten: u64 = self.rings.iter().map(|ring| ring.overwritten).sum();
        tracing::debug!(overwritten, "windows had given way to later ones");
        let mut packets = Vec::new();
        if let Some(scheduling) = &self.scheduling {
            packets.extend(scheduling.facts());
        }
        for ring in &self.rings {
            packets.extend(ring.cloned());
        }
        packets.extend(trigger_packet(
            &self.trigger.name,
            wanted.triggered_ns,
            self.trigger.stop_delay_ms,
        ));
        Ok(packets)
    }

    fn finish(self: Box<Self>) -> Result<(), DaemonError> {
        match self.sampling {
            Some(sampling) => sampling.stop(),
            None => Ok(()),
        }
    }
}

/// Snapshots lack what only Perfetto's own programs record.
fn tell_what_is_left_out(config: &TraceConfig) {
    // The process tree, for which most ask by it, is in every window.
    let sources = config.other_sources.iter();
    let sources = sources.filter(|name| *name != "linux.process_stats");
    let events = config.ftrace_events.iter();
    let events = events.filter(|name| !name.ends_with("sched_switch"));
    let left_out: Vec<&str> = sources.chain(events).map(String::as_str).collect();
    if !left_out.is_empty() {
        let left_out = left_out.join(", ");
        tracing::warn!(
            left_out,
            "the native engine has none of these sources and events"
        );
    }
}
