//! What the agent is asked to do for a `linux.perf` data source, and what our sampler does not do.

use std::time::Duration;

use candela_agent::AgentOptions;
use candela_agent::Kind;
use candela_agent::ProcessFacts;
use candela_agent::ProcessRule;
use candela_agent::SampleFilters;
use candela_fleet::TraceConfig;
use candela_fleet::trace_config::PerfEvent;
use candela_fleet::trace_config::PerfSource;
use candela_fleet::trace_config::ProcessScope;
use candela_fleet::trace_config::SamplingRate;

use crate::error::DaemonError;

/// The shortest that the agent has: a snapshot waits for its end.
const WINDOW: Duration = Duration::from_secs(1);

/// `base` has the names and bounds of the node.
pub(crate) fn agent_options(
    source: &PerfSource,
    base: &AgentOptions,
) -> Result<AgentOptions, DaemonError> {
    if source.event != PerfEvent::CpuClock {
        return Err(impossible(&format!(
            "counts {:?}, and our sampler has the clock of the CPUs alone; remove the counter",
            source.event
        )));
    }
    if source.scope.additional_cmdline_count.is_some() {
        return Err(impossible(
            "has additional_cmdline_count; name the command lines",
        ));
    }
    Ok(AgentOptions {
        rate_hz: rate_of(source.rate)?,
        kinds: [Kind::Cpu].into(),
        events: Vec::new(),
        sampling: true,
        window: WINDOW,
        first_window: WINDOW,
        timestamps: true,
        cpus: true,
        spool: None,
        scrape: Vec::new(),
        filters: SampleFilters {
            processes: process_rule(&source.scope),
            ..SampleFilters::default()
        },
        ..base.clone()
    })
}

/// The one `linux.perf` of a configuration; none where scheduling slices alone are asked for.
pub(crate) fn samples_wanted(config: &TraceConfig) -> Result<Option<&PerfSource>, DaemonError> {
    if config.perf_sources.is_empty() && config.wants_scheduling {
        return Ok(None);
    }
    perf_source(config).map(Some)
}

/// The one `linux.perf` that a real `traced` gets from us; none where only others fill the trace.
#[cfg(feature = "perfetto")]
pub(crate) fn samples_for_traced(config: &TraceConfig) -> Result<Option<&PerfSource>, DaemonError> {
    match config.perf_sources.is_empty() {
        true => Ok(None),
        false => perf_source(config).map(Some),
    }
}

/// The one `linux.perf` of a configuration.
pub(crate) fn perf_source(config: &TraceConfig) -> Result<&PerfSource, DaemonError> {
    match config.perf_sources.as_slice() {
        [source] => Ok(source),
        [] => Err(impossible(
            "is not there, and the native engine has scheduling slices alone beside it; add it, or linux.ftrace with sched/sched_switch",
        )),
        _ => Err(impossible(
            "is there more than once; write a perfetto_daemon for each",
        )),
    }
}

fn rate_of(rate: SamplingRate) -> Result<u32, DaemonError> {
    match rate {
        SamplingRate::Frequency(hz) => Ok(hz.clamp(1, 1000)),
        // Of a clock, periods are nanoseconds.
        SamplingRate::Period(period) => {
            let hz = 1_000_000_000 / period.max(1);
            Ok(u32::try_from(hz).unwrap_or(u32::MAX).clamp(1, 1000))
        }
        SamplingRate::Poll(_) => Err(impossible(
            "asks for counters without samples; write frequency",
        )),
    }
}

fn process_rule(scope: &ProcessScope) -> Option<ProcessRule> {
    if *scope == ProcessScope::default() {
        return None;
    }
    let scope = scope.clone();
    Some(ProcessRule::new(move |process| keeps(&scope, process)))
}

fn keeps(scope: &ProcessScope, process: &ProcessFacts) -> bool {
    let line = process.arguments.join(" ");
    let program = process
        .arguments
        .first()
        .map(String::as_str)
        .unwrap_or_default();
    // As in Perfetto: a pattern is of the whole line, of the program or of its base name.
    let base_name = program.rsplit('/').next().unwrap_or_default();
    let is_one = |patterns: &[String]| {
        patterns.iter().any(|pattern| {
            [line.as_str(), program, base_name]
                .iter()
                .any(|text| covers(pattern, text))
        })
    };
    let is_excluded = scope.exclude_pids.contains(&process.pid) || is_one(&scope.exclude_cmdlines);
    let has_targets = !scope.target_pids.is_empty() || !scope.target_cmdlines.is_empty();
    let is_target = scope.target_pids.contains(&process.pid) || is_one(&scope.target_cmdlines);
    !is_excluded && (!has_targets || is_target)
}

/// Whether a pattern with one `*` at most covers a text.
fn covers(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((begin, end)) => {
            let rest = text.strip_prefix(begin);
            rest.is_some_and(|rest| rest.ends_with(end))
        }
    }
}

fn impossible(what: &str) -> DaemonError {
    DaemonError::Impossible {
        reason: format!("linux.perf of config_text {what}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_choose_processes() {
        let process = ProcessFacts {
            pid: 7,
            arguments: vec!["/srv/api".to_owned(), "--x".to_owned()],
            ..ProcessFacts::default()
        };
        let texts = |text: &str| vec![text.to_owned()];
        let none = ProcessScope::default();
        for pattern in ["/srv/api", "api", "/srv/*", "*--x", "/srv/api --x"] {
            let target = ProcessScope {
                target_cmdlines: texts(pattern),
                ..none.clone()
            };
            assert!(keeps(&target, &process), "{pattern}");
            let excluded = ProcessScope {
                exclude_cmdlines: texts(pattern),
                ..none.clone()
            };
            assert!(!keeps(&excluded, &process), "{pattern}");
        }
        let other = ProcessScope {
            target_pids: vec![8],
            ..none.clone()
        };
        assert!(!keeps(&other, &process));
        assert!(keeps(
            &ProcessScope {
                target_pids: vec![8, 7],
                ..none
            },
            &process
        ));
        assert!(process_rule(&ProcessScope::default()).is_none());
    }
}
