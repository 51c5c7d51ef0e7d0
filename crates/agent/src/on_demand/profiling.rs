//! A session from its target to its bytes.

use std::time::Instant;

use candela_ebpf::monotonic_ns;
use candela_model::Profile;

use crate::on_demand::encode::encode;
use crate::on_demand::host_processes::HostProcess;
use crate::on_demand::request::ProfileRequest;
use crate::on_demand::request::Profiler;
use crate::on_demand::sampler;
use crate::on_demand::session::Session;
use crate::on_demand::target::Resolved;
use crate::on_demand::tools;
use crate::options::AgentOptions;
use crate::pipeline::LONGEST_NAMING;
use crate::source::namer;
use crate::status::StatusBoard;

/// How a session ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// With pprof bytes.
    Profile(Vec<u8>),
    /// Somebody ended it and wanted nothing of it.
    Discarded,
    /// Without a profile, and why.
    Failed(String),
}

/// Takes samples and makes a profile of them. Blocks as long as the request says, and longer.
pub(crate) fn profile(
    request: &ProfileRequest,
    agent: &AgentOptions,
    session: &Session,
) -> Outcome {
    let taken = take(request, agent, session);
    // Whatever became of it: nobody wants it.
    if session.signals.is_discarded() {
        return Outcome::Discarded;
    }
    let bytes = taken.and_then(|profile| {
        if profile.sample_count() == 0 {
            return Err("no samples: none of the processes ran on a CPU meanwhile".to_owned());
        }
        encode(profile, request.archive).map_err(|error| error.to_string())
    });
    // Once more: writing it takes a while, too.
    if session.signals.is_discarded() {
        return Outcome::Discarded;
    }
    match bytes {
        Ok(bytes) => Outcome::Profile(bytes),
        Err(reason) => Outcome::Failed(reason),
    }
}

fn take(
    request: &ProfileRequest,
    agent: &AgentOptions,
    session: &Session,
) -> Result<Profile, String> {
    let target = find(request, agent)?;
    match &request.profiler {
        Profiler::BccProfile(None) | Profiler::Perf(None) => {
            sampler::sample(request, target, agent, session).map_err(|error| error.to_string())
        }
        Profiler::Perf(Some(path)) => tools::perf(path, request, &target, session),
        Profiler::BccProfile(Some(path)) => tools::bcc_profile(path, request, &target, session),
    }
}

fn find(request: &ProfileRequest, agent: &AgentOptions) -> Result<Resolved, String> {
    // What cannot be counted here is the agent's to count.
    let namer = namer(agent, &StatusBoard::default()).map_err(|error| error.to_string())?;
    let deadline = Instant::now() + LONGEST_NAMING;
    let name_of = |process: &HostProcess| namer.settled(process.facts(), monotonic_ns(), deadline);
    request.target().resolve(&HostProcess::all(), name_of)
}
