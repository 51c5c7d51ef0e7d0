//! `limit` of an element, as far as a daemon that is a part of the agent's process keeps it.
//!
//! Not by a cgroup: memory is counted there by process, and all daemons of a node are in one. So each keeps its own
//! books: its sampler has a CPU budget, and what it may hold by choice has a bound. What it holds beside that (windows on
//! their way, a few megabytes) is not in it, and `request` is for Kubernetes to set aside.

use candela_agent::AgentOptions;
use candela_fleet::DaemonBody;
use candela_fleet::ObservabilityDaemon;
use candela_fleet::PerfettoEngine;
use candela_fleet::Profiler;
use candela_fleet::TraceConfig;

use crate::error::DaemonError;
use crate::notes::Notes;

/// Tables and symbols, with less of which nothing has a name.
const LEAST_BYTES: u64 = 8 << 20;

/// `base` within the limit of an element.
///
/// # Errors
/// [`DaemonError::Impossible`] when what the document asks for is larger than its limit.
pub(crate) fn within_limit(
    element: &ObservabilityDaemon,
    base: &AgentOptions,
) -> Result<AgentOptions, DaemonError> {
    let mut options = base.clone();
    let Some(limit) = &element.limit else {
        return Ok(options);
    };
    if let Some(cores) = limit.cpu_quantity() {
        options.cpu_budget = Some(cores.thousandths() as f64 / 1000.0);
    }
    let Some(memory) = limit.memory_quantity() else {
        return Ok(options);
    };
    let ring = ring_bytes(&element.body);
    let written = limit.memory.as_deref().unwrap_or_default();
    let left = memory.bytes().checked_sub(ring);
    let left = left.filter(|left| *left >= LEAST_BYTES);
    let left = left.ok_or_else(|| DaemonError::Impossible {
        reason: format!(
            "limit.memory is {written}, and the buffer of config_text takes {} KiB beside {} KiB for tables and symbols; \
             raise limit.memory or lower size_kb",
            ring >> 10,
            LEAST_BYTES >> 10
        ),
    })?;
    options.table_budget_bytes = options.table_budget_bytes.min(left / 2);
    let symbols = usize::try_from(left / 2).unwrap_or(usize::MAX);
    options.symbol_cache_bytes = options.symbol_cache_bytes.min(symbols);
    Ok(options)
}

/// Says what of the resources of an element holds on this host, and how. In a DaemonSet of its own Kubernetes sets
/// aside what is requested.
pub(crate) fn tell(element: &ObservabilityDaemon, is_daemon_set: bool, notes: &Notes) {
    if !is_daemon_set {
        tell_request(element, notes);
    }
    let Some(limit) = &element.limit else {
        return;
    };
    let is_ours = !is_of_perf(element);
    if let Some(cpu) = limit.cpu.as_ref().filter(|_| is_ours) {
        let how = "is kept by the sampler, which takes fewer samples than asked for when it must";
        notes.set("limit.cpu", format!("limit.cpu {cpu} {how}"));
    }
    if let Some(memory) = limit.memory.as_ref().filter(|_| is_ours) {
        let how = match is_in_traced(&element.body) {
            true => "is kept for unwind tables and symbols; the buffers are in traced's memory",
            false => "is kept for the ring, unwind tables and symbols",
        };
        notes.set("limit.memory", format!("limit.memory {memory} {how}"));
    }
    for (name, amount) in [
        ("ephemeral_storage", &limit.ephemeral_storage),
        ("storage", &limit.storage),
    ] {
        if let Some(amount) = amount {
            notes.set("limit.storage", format!("limit.{name} {amount} is for Kubernetes; files on the node have bounds of their own"));
        }
    }
}

/// Memory that others cannot have is a matter of cgroups, and we are in one with all that the agent does. perf has its own.
fn tell_request(element: &ObservabilityDaemon, notes: &Notes) {
    let Some(request) = &element.request else {
        return;
    };
    let how = "is not set aside by this host; Kubernetes does so where the daemon has a DaemonSet of its own";
    let memory = request.memory.as_ref().filter(|_| !is_of_perf(element));
    for (about, amount) in [
        ("request.cpu", request.cpu.as_ref()),
        ("request.memory", memory),
    ] {
        if let Some(amount) = amount {
            notes.set(about, format!("{about} {amount} {how}"));
        }
    }
}

/// What perf takes, a program of its own, is its daemon's to say: it knows whether there is a cgroup.
fn is_of_perf(element: &ObservabilityDaemon) -> bool {
    matches!(&element.body, DaemonBody::PerfCollector(it) if it.profiler() == Profiler::Perf)
}

/// Says when the sampler takes fewer samples than the document asks for, in thousandths of a hertz.
pub(crate) fn tell_rate(notes: &Notes, configured: u64, allowed: u64) {
    const ABOUT: &str = "rate";
    if allowed == 0 || allowed >= configured {
        notes.clear(ABOUT);
        return;
    }
    let hertz = |thousandths: u64| thousandths as f64 / 1000.0;
    let (allowed, configured) = (hertz(allowed), hertz(configured));
    notes.set(
        ABOUT,
        format!("samples at {allowed:.1} Hz of {configured} Hz, to stay within limit.cpu"),
    );
}

fn is_in_traced(body: &DaemonBody) -> bool {
    matches!(body, DaemonBody::PerfettoDaemon(it) if it.engine() == PerfettoEngine::Traced)
}

/// What the buffers of a trace take here; those of a real `traced` are in its memory.
fn ring_bytes(body: &DaemonBody) -> u64 {
    let config: Option<TraceConfig> = match body {
        DaemonBody::PerfettoDaemon(daemon) if !is_in_traced(body) => daemon.trace_config(),
        DaemonBody::PerfettoDaemon(_) | DaemonBody::PerfCollector(_) => None,
    };
    let buffers = config.map(|config| config.buffers).unwrap_or_default();
    buffers
        .iter()
        .map(|buffer| u64::from(buffer.size_kb) << 10)
        .sum()
}

#[cfg(test)]
mod tests {
    use candela_fleet::FleetDocument;

    use super::*;

    fn element(text: &str) -> ObservabilityDaemon {
        let text = format!(r#"{{"observability_daemons": [{text}]}}"#);
        let document = FleetDocument::read(&text).expect("a document").document;
        document.daemons()[0].clone()
    }

    fn perfetto(memory: &str) -> ObservabilityDaemon {
        let config = r#"buffers { size_kb: 65536 fill_policy: RING_BUFFER } data_sources { config { name: \"linux.perf\" perf_event_config { all_cpus: true sampling_frequency: 100 } } } trigger_config { trigger_mode: CLONE_SNAPSHOT trigger_timeout_ms: 1000000 triggers { name: \"moment\" stop_delay_ms: 10 } }"#;
        element(&format!(
            r#"{{"limit": {{"memory": "{memory}", "cpu": "50m"}}, "perfetto_daemon": {{"export_to": "s3://bucket",
                "trigger": "PERFETTO_TRIGGER_HTTP", "trigger_name": "moment", "config_text": "{config}"}}}}"#
        ))
    }

    #[test]
    fn tables_and_symbols_share_what_the_ring_leaves() {
        let base = AgentOptions::default();
        let options = within_limit(&perfetto("96Mi"), &base).expect("it fits");
        assert_eq!(options.table_budget_bytes, 16 << 20);
        assert_eq!(options.symbol_cache_bytes, 16 << 20);
        assert_eq!(options.cpu_budget, Some(0.05));
        let ample = within_limit(&perfetto("1Gi"), &base).expect("it fits");
        assert_eq!(ample.table_budget_bytes, base.table_budget_bytes);
        let mut elsewhere = perfetto("68Mi");
        if let DaemonBody::PerfettoDaemon(daemon) = &mut elsewhere.body {
            daemon.engine = Some(PerfettoEngine::Traced);
        }
        let options = within_limit(&elsewhere, &base).expect("the ring is in traced's memory");
        assert_eq!(options.table_budget_bytes, 34 << 20);
        let error = within_limit(&perfetto("68Mi"), &base).expect_err("too large");
        assert!(
            error.is_permanent() && error.to_string().contains("lower size_kb"),
            "{error}"
        );
    }

    #[test]
    fn what_holds_is_told() {
        let notes = Notes::default();
        tell(&perfetto("96Mi"), false, &notes);
        let told = notes.all();
        assert_eq!(told.len(), 2);
        assert!(
            told[0].starts_with("limit.cpu 50m is kept by the sampler"),
            "{told:?}"
        );
        tell_rate(&notes, 99_000, 49_500);
        assert!(
            notes
                .all()
                .contains(&"samples at 49.5 Hz of 99 Hz, to stay within limit.cpu".to_owned())
        );
        tell_rate(&notes, 99_000, 99_000);
        assert_eq!(notes.all(), told);
    }

    #[test]
    fn what_nobody_sets_aside_is_told() {
        let requested = |profiler: &str, is_daemon_set: bool| {
            let notes = Notes::default();
            let element = element(&format!(
                r#"{{"request": {{"cpu": "50m", "memory": "96Mi"}}, "perf_collector": {{"export_to": "s3://bucket"{profiler}}}}}"#
            ));
            tell(&element, is_daemon_set, &notes);
            notes.all()
        };
        let ours = requested("", false);
        let starts = ["request.cpu 50m is not set aside", "request.memory 96Mi is"];
        let is_told = |(note, start): (&String, &str)| note.starts_with(start);
        assert!(
            ours.len() == 2 && ours.iter().zip(starts).all(is_told),
            "{ours:?}"
        );
        // Of its memory perf's daemon says whether there is a cgroup for it.
        let of_perf = requested(r#", "profiler": "perf""#, false);
        assert!(
            of_perf.len() == 1 && of_perf[0].starts_with(starts[0]),
            "{of_perf:?}"
        );
        let of_a_daemon_set = requested("", true);
        assert!(of_a_daemon_set.is_empty(), "{of_a_daemon_set:?}");
    }
}
