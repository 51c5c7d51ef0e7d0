//! A `linux.perf` at work: the agent's sampler as its configuration asks for it, whichever engine records.

use std::sync::mpsc::Receiver;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use candela_agent::Agent;
use candela_agent::AgentHandle;
use candela_agent::AgentOptions;
use candela_agent::ExportError;
use candela_agent::InProcess;
use candela_fleet::trace_config::Callstacks;
use candela_fleet::trace_config::PerfSource;
use candela_fleet::trace_config::UserFrames;
use candela_formats::WriteError;
use candela_model::FrameKind;
use candela_model::LabelValue;
use candela_model::LocationId;
use candela_model::Profile;
use candela_model::Sample;

use crate::error::DaemonError;
use crate::perfetto::plan::agent_options;

/// Windows between the agent and the engine.
const WINDOW_QUEUE: usize = 4;

/// A sampler that runs.
#[derive(Debug)]
pub(crate) struct Sampling {
    agent: AgentHandle,
    windows: Receiver<Profile>,
    source: PerfSource,
    recorded_until_ns: i64,
}

impl Sampling {
    /// Samples from now on.
    ///
    /// # Errors
    /// What stands in the way of sampling.
    pub(crate) fn start(source: &PerfSource, base: &AgentOptions) -> Result<Self, DaemonError> {
        let options = agent_options(source, base)?;
        let (sender, windows) = sync_channel(WINDOW_QUEUE);
        let exporter = InProcess::new(move |profile| {
            let sent = sender.try_send(profile.clone());
            sent.map_err(|error| ExportError::Unavailable {
                reason: format!("the trace cannot be filled as fast: {error}"),
            })
        });
        Ok(Self {
            agent: Agent::start(options, Box::new(exporter))?,
            windows,
            source: source.clone(),
            recorded_until_ns: 0,
        })
    }

    /// The next window, if there is one in time.
    ///
    /// # Errors
    /// When sampling has ended.
    pub(crate) fn next(&mut self, timeout: Duration) -> Result<Option<Profile>, DaemonError> {
        let window = match self.windows.recv_timeout(timeout) {
            Ok(window) => Some(window),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
        };
        if !self.agent.is_running() {
            return Err(self.ended());
        }
        let series = window.iter().flat_map(|window| &window.series);
        let ends = series.map(|series| series.start_ns.saturating_add(series.duration_ns));
        // Not the latest of all: a clock that was set back would have everything in the ring for an hour.
        if let Some(until_ns) = ends.max() {
            self.recorded_until_ns = until_ns;
        }
        Ok(window)
    }

    /// Until when every sample was handed over, nanoseconds since the epoch.
    pub(crate) fn recorded_until_ns(&self) -> i64 {
        self.recorded_until_ns
    }

    /// Which buffer of the trace it fills.
    pub(crate) fn buffer(&self) -> usize {
        self.source.target_buffer as usize
    }

    /// A window as packets, with what was asked for.
    ///
    /// # Errors
    /// When a value is none of a trace.
    pub(crate) fn packets(&self, window: &Profile) -> Result<Vec<u8>, WriteError> {
        let window = as_asked_for(window.clone(), &self.source);
        let mut packets = Vec::new();
        candela_formats::write_perfetto(&window, &mut packets)?;
        Ok(packets)
    }

    /// Ends it.
    ///
    /// # Errors
    /// When it did not end well.
    pub(crate) fn stop(self) -> Result<(), DaemonError> {
        self.agent.stop()?;
        Ok(())
    }

    fn ended(&self) -> DaemonError {
        DaemonError::SamplerEnded {
            reason: self.agent.status().failure,
        }
    }
}

/// Without the frames and CPUs that nobody asked for.
fn as_asked_for(mut window: Profile, source: &PerfSource) -> Profile {
    if !source.target_cpus.is_empty() {
        let labels = window.clone();
        for series in &mut window.series {
            series.samples.retain(|sample| {
                cpu_of(&labels, sample).is_some_and(|cpu| source.target_cpus.contains(&cpu))
            });
        }
    }
    let (has_kernel, has_user) = match source.callstacks {
        None => (false, false),
        Some(Callstacks {
            kernel_frames,
            user_frames,
        }) => (kernel_frames, user_frames != UserFrames::Skip),
    };
    if has_kernel && has_user {
        return window;
    }
    let whole = window.clone();
    for series in &mut window.series {
        for sample in &mut series.samples {
            let is_kept = |location: &&LocationId| {
                let is_kernel = whole.symbols.location(**location).kind == FrameKind::Kernel;
                if is_kernel { has_kernel } else { has_user }
            };
            let frames = whole.stacks.get(sample.stack).iter().filter(is_kept);
            let frames: Vec<LocationId> = frames.copied().collect();
            sample.stack = window.stacks.intern(&frames);
        }
    }
    window
}

fn cpu_of(profile: &Profile, sample: &Sample) -> Option<u32> {
    let mut labels = profile.label_sets.get(sample.label_set).iter();
    labels.find_map(|label| match label.value {
        LabelValue::Number { value, .. } if profile.symbols.strings.get(label.key) == "cpu" => {
            u32::try_from(value).ok()
        }
        _ => None,
    })
}
