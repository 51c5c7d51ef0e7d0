//! Which engine a document asks for, and what of it this build has.

use std::time::Duration;

use candela_agent::AgentOptions;
use candela_fleet::PerfettoDaemon;
use candela_fleet::PerfettoEngine;
use candela_fleet::TraceConfig;
use candela_fleet::trace_config::PerfSource;

use crate::daemon::DaemonContext;
use crate::error::DaemonError;
use crate::perfetto::engine::TraceEngine;
use crate::perfetto::native::NativeEngine;
use crate::perfetto::plan;
#[cfg(feature = "perfetto")]
use crate::perfetto::traced::SNAPSHOT_PATIENCE;
#[cfg(feature = "perfetto")]
use crate::perfetto::traced::START_PATIENCE;
#[cfg(feature = "perfetto")]
use crate::perfetto::traced::TracedConfig;
#[cfg(feature = "perfetto")]
use crate::perfetto::traced::TracedEngine;

/// How long a native snapshot waits for windows of its last moments; where nothing runs there are none.
const NATIVE_PATIENCE: Duration = Duration::from_secs(5);

/// An engine that is not started.
#[derive(Debug)]
pub(crate) enum EngineChoice {
    /// Our own.
    Native,
    /// A real `traced`, and what it is asked for.
    #[cfg(feature = "perfetto")]
    Traced(TracedConfig),
}

impl EngineChoice {
    /// The engine of an element.
    ///
    /// # Errors
    /// When this build does not have it, or it would not understand `config_text`.
    pub(crate) fn of(daemon: &PerfettoDaemon) -> Result<Self, DaemonError> {
        match daemon.engine() {
            PerfettoEngine::Native => Ok(Self::Native),
            #[cfg(feature = "perfetto")]
            PerfettoEngine::Traced => {
                let text = daemon.config_text.as_deref().unwrap_or_default();
                Ok(Self::Traced(TracedConfig::read(text)?))
            }
            #[cfg(not(feature = "perfetto"))]
            PerfettoEngine::Traced => Err(DaemonError::Impossible {
                reason: "engine \"traced\" is not in this build; build candela with --features perfetto, \
                         or remove it: the native one has linux.perf"
                    .to_owned(),
            }),
        }
    }

    /// The `linux.perf` that it takes from our sampler, if any.
    ///
    /// # Errors
    /// [`DaemonError::Impossible`].
    pub(crate) fn samples<'config>(
        &self,
        config: &'config TraceConfig,
    ) -> Result<Option<&'config PerfSource>, DaemonError> {
        match self {
            Self::Native => plan::samples_wanted(config),
            #[cfg(feature = "perfetto")]
            Self::Traced(_) => plan::samples_for_traced(config),
        }
    }

    /// Starts it.
    ///
    /// # Errors
    /// What stands in the way.
    #[cfg_attr(
        not(feature = "perfetto"),
        expect(unused_variables, reason = "our own engine asks nobody for the time")
    )]
    pub(crate) fn start(
        &self,
        config: &TraceConfig,
        base: &AgentOptions,
        context: &DaemonContext,
    ) -> Result<Box<dyn TraceEngine>, DaemonError> {
        match self {
            Self::Native => Ok(Box::new(NativeEngine::start(config, base)?)),
            #[cfg(feature = "perfetto")]
            Self::Traced(traced) => {
                let engine = TracedEngine::start(traced, config, base, &context.clock)?;
                Ok(Box::new(engine))
            }
        }
    }

    /// How long a snapshot waits, beyond the delay of its trigger, until it is taken as it is.
    pub(crate) fn patience(&self) -> Duration {
        match self {
            Self::Native => NATIVE_PATIENCE,
            #[cfg(feature = "perfetto")]
            Self::Traced(_) => SNAPSHOT_PATIENCE,
        }
    }

    /// How long a trigger may wait for an engine that is on its way.
    pub(crate) fn start_patience(&self) -> Duration {
        match self {
            Self::Native => Duration::ZERO,
            #[cfg(feature = "perfetto")]
            Self::Traced(_) => START_PATIENCE,
        }
    }
}

#[cfg(all(test, not(feature = "perfetto")))]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_traced_says_so() {
        let daemon = PerfettoDaemon {
            engine: Some(PerfettoEngine::Traced),
            ..PerfettoDaemon::default()
        };
        let error = EngineChoice::of(&daemon).expect_err("it is not in this build");
        assert!(error.is_permanent(), "{error}");
        assert!(error.to_string().contains("--features perfetto"), "{error}");
    }
}
