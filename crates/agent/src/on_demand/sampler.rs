//! Our own sampler: what `candela record` does, for a session.

use std::sync::Arc;

use candela_model::Profile;

use crate::AgentError;
use crate::on_demand::request::ProfileRequest;
use crate::on_demand::session::Session;
use crate::on_demand::target::Resolved;
use crate::options::AgentOptions;
use crate::options::RecordOptions;
use crate::options::RecordTargets;
use crate::record::record;

/// The CPU time of the target.
///
/// # Errors
/// As [`record`].
pub(crate) fn sample(
    request: &ProfileRequest,
    target: Resolved,
    agent: &AgentOptions,
    session: &Session,
) -> Result<Profile, AgentError> {
    let targets = match target {
        Resolved::Pids(pids) => RecordTargets::Pids(pids),
        Resolved::Host => RecordTargets::All,
    };
    let options = RecordOptions {
        rate_hz: request.sampling_frequency.into(),
        duration: Some(request.duration()),
        stop: Arc::clone(&session.signals.stop),
        discard: Arc::clone(&session.signals.discard),
        // Whoever asked waits: debug files that are not here would come too late.
        agent: AgentOptions {
            debuginfod_urls: Vec::new(),
            ..agent.clone()
        },
        ..RecordOptions::new(targets)
    };
    let recording = record(options, || session.has_begun())?;
    Ok(recording.profile)
}
