//! A text to a [`TraceConfig`].

use crate::text_proto;
use crate::trace_config::FillPolicy;
use crate::trace_config::ReadTraceConfig;
use crate::trace_config::SnapshotTrigger;
use crate::trace_config::TOP;
use crate::trace_config::TextFinding;
use crate::trace_config::TraceBuffer;
use crate::trace_config::TraceConfig;
use crate::trace_config::perf::PerfSource;
use crate::trace_config::perf::read_perf;
use crate::trace_config::section::Findings;
use crate::trace_config::section::Section;

/// The tracing service takes less than 4 GiB a buffer.
const MOST_BUFFER_KB: u32 = 4_194_303;
/// Seven days, the most that the tracing service waits for triggers, milliseconds.
const MOST_TIMEOUT_MS: u32 = 7 * 24 * 3600 * 1000;
/// Longer, and a snapshot is no longer of the moment that matters: an hour, milliseconds.
const MOST_STOP_DELAY_MS: u32 = 3600 * 1000;

/// Fields of `TraceConfig`.
const TOP_NAMES: [&str; 38] = [
    "buffers",
    "data_sources",
    "builtin_data_sources",
    "duration_ms",
    "prefer_suspend_clock_for_duration",
    "enable_extra_guardrails",
    "lockdown_mode",
    "producers",
    "statsd_metadata",
    "write_into_file",
    "output_path",
    "file_write_period_ms",
    "max_file_size_bytes",
    "guardrail_overrides",
    "deferred_start",
    "flush_period_ms",
    "flush_timeout_ms",
    "data_source_stop_timeout_ms",
    "notify_traceur",
    "bugreport_score",
    "bugreport_filename",
    "trigger_config",
    "activate_triggers",
    "incremental_state_config",
    "allow_user_build_tracing",
    "unique_session_name",
    "compression_type",
    "compress_from_cli",
    "incident_report_config",
    "statsd_logging",
    "trace_uuid_msb",
    "trace_uuid_lsb",
    "trace_filter",
    "android_report_config",
    "cmd_trace_start_delay",
    "session_semaphores",
    "priority_boost",
    "trace_all_machines",
];
const BUFFER_NAMES: [&str; 6] = [
    "size_kb",
    "fill_policy",
    "transfer_on_clone",
    "clear_before_clone",
    "name",
    "experimental_mode",
];
const TRIGGER_CONFIG_NAMES: [&str; 4] = [
    "trigger_mode",
    "use_clone_snapshot_if_available",
    "triggers",
    "trigger_timeout_ms",
];
const TRIGGER_NAMES: [&str; 5] = [
    "name",
    "producer_name_regex",
    "stop_delay_ms",
    "max_per_24_h",
    "skip_probability",
];
const FILL_POLICIES: [(&str, Option<u64>, FillPolicy); 3] = [
    ("UNSPECIFIED", Some(0), FillPolicy::RingBuffer),
    ("RING_BUFFER", Some(1), FillPolicy::RingBuffer),
    ("DISCARD", Some(2), FillPolicy::Discard),
];
const CURE_OF_TRIGGER: &str = "write trigger_config { trigger_mode: CLONE_SNAPSHOT triggers { name: \"…\" stop_delay_ms: 1000 } }";

#[derive(Default)]
struct Sources {
    perf: Vec<PerfSource>,
    ftrace_events: Vec<String>,
    /// The buffer of the first source that asks for scheduling slices.
    scheduling_buffer: Option<u32>,
    others: Vec<String>,
}

pub(super) fn read(
    text: &str,
    trigger_name: Option<&str>,
) -> Result<ReadTraceConfig, Vec<TextFinding>> {
    let message = text_proto::parse(text).map_err(|error| {
        vec![TextFinding {
            position: error.position,
            message: error.message,
        }]
    })?;
    let top = Section {
        message: &message,
        position: TOP,
    };
    let mut findings = Findings::default();
    top.warn_unknown(&TOP_NAMES, &mut findings);
    let buffers = read_buffers(top, &mut findings);
    let (trigger, trigger_config_start) = read_trigger_config(top, trigger_name, &mut findings);
    refuse_what_triggers_exclude(top, &mut findings);
    let sources = read_sources(top, buffers.len(), &mut findings);
    if !findings.problems.is_empty() {
        return Err(findings.problems);
    }
    if sources.perf.is_empty() {
        let message = "no data source linux.perf: snapshots will hold no CPU samples";
        findings.warning(TOP, message);
    }
    Ok(ReadTraceConfig {
        config: TraceConfig {
            buffers,
            trigger,
            perf_sources: sources.perf,
            wants_scheduling: sources.scheduling_buffer.is_some(),
            scheduling_buffer: sources.scheduling_buffer.unwrap_or(0),
            ftrace_events: sources.ftrace_events,
            other_sources: sources.others,
        },
        warnings: findings.warnings,
        trigger_config_start,
    })
}

fn read_buffers(top: Section<'_>, findings: &mut Findings) -> Vec<TraceBuffer> {
    let sections = top.sections("buffers", findings);
    if sections.is_empty() && !top.has("buffers") {
        findings.problem(
            TOP,
            "no buffers; write buffers { size_kb: 102400 fill_policy: RING_BUFFER }",
        );
    }
    let mut buffers = Vec::with_capacity(sections.len());
    for section in sections {
        section.warn_unknown(&BUFFER_NAMES, findings);
        let size_kb = section.unsigned("size_kb", 4..=MOST_BUFFER_KB, findings);
        if size_kb.is_none() && !section.has("size_kb") {
            findings.problem(
                section.position,
                "a buffer has no size; write size_kb: 102400",
            );
        }
        let fill_policy = section.choice("fill_policy", &FILL_POLICIES, findings);
        if fill_policy == Some(FillPolicy::Discard) {
            findings.warning(
                section.position_of("fill_policy"),
                "DISCARD keeps what came first: snapshots will not hold the moment before them; RING_BUFFER does",
            );
        }
        // A size that was refused is a problem already; the count must stay right.
        buffers.push(TraceBuffer {
            size_kb: size_kb.unwrap_or(0),
            fill_policy: fill_policy.unwrap_or(FillPolicy::RingBuffer),
        });
    }
    buffers
}

fn read_trigger_config(
    top: Section<'_>,
    trigger_name: Option<&str>,
    findings: &mut Findings,
) -> (SnapshotTrigger, usize) {
    let mut trigger = SnapshotTrigger {
        name: trigger_name.unwrap_or_default().to_owned(),
        stop_delay_ms: 0,
        timeout_ms: None,
    };
    let Some(section) = top.section("trigger_config", findings) else {
        if !top.has("trigger_config") {
            findings.problem(TOP, format!("no trigger_config; {CURE_OF_TRIGGER}"));
        }
        return (trigger, 0);
    };
    let start = section.message.body_start;
    section.warn_unknown(&TRIGGER_CONFIG_NAMES, findings);
    check_mode(section, findings);
    let clone_where_possible = "use_clone_snapshot_if_available";
    if section.boolean(clone_where_possible, findings) == Some(true) {
        let message = format!("{clone_where_possible} goes with STOP_TRACING only; remove it");
        findings.problem(section.position_of(clone_where_possible), message);
    }
    trigger.timeout_ms = section.unsigned("trigger_timeout_ms", 1..=MOST_TIMEOUT_MS, findings);
    let mut names: Vec<String> = Vec::new();
    for one in section.sections("triggers", findings) {
        one.warn_unknown(&TRIGGER_NAMES, findings);
        let delay = one.unsigned("stop_delay_ms", 0..=MOST_STOP_DELAY_MS, findings);
        let Some(name) = one.text("name", findings) else {
            if !one.has("name") {
                findings.problem(one.position, "a trigger has no name; write name: \"…\"");
            }
            continue;
        };
        if names.contains(&name) {
            let message = format!("a second trigger is called {name:?}; remove one");
            findings.problem(one.position_of("name"), message);
        }
        if trigger_name == Some(name.as_str()) {
            trigger.stop_delay_ms = delay.unwrap_or(0);
        }
        names.push(name);
    }
    if let Some(wanted) = trigger_name {
        check_names(section, wanted, &names, findings);
    } else if !section.has("triggers") {
        findings.problem(
            section.position,
            "trigger_config has no triggers; write triggers { name: \"…\" }",
        );
    }
    (trigger, start)
}

fn check_mode(section: Section<'_>, findings: &mut Findings) {
    let cure = "write trigger_mode: CLONE_SNAPSHOT";
    if !section.has("trigger_mode") {
        findings.problem(
            section.position,
            format!("trigger_config has no trigger_mode; {cure}"),
        );
        return;
    }
    // 3 is reserved in Perfetto.
    if !matches!(
        section.word("trigger_mode", findings).as_deref(),
        Some("CLONE_SNAPSHOT" | "4") | None
    ) {
        let message = format!("trigger_mode ends the trace with its first snapshot; {cure}");
        findings.problem(section.position_of("trigger_mode"), message);
    }
}

/// Perfetto takes a trigger that nobody waits for in silence.
fn check_names(section: Section<'_>, wanted: &str, names: &[String], findings: &mut Findings) {
    if names.iter().any(|name| name == wanted) {
        return;
    }
    let cure = format!("write triggers {{ name: {wanted:?} }} or change trigger_name");
    let message = if names.is_empty() {
        format!("no trigger, and trigger_name is {wanted:?}; {cure}")
    } else {
        format!("no trigger is called {wanted:?}, as trigger_name says, only {names:?}; {cure}")
    };
    findings.problem(section.position_of("triggers"), message);
}

/// What the tracing service refuses beside a `trigger_config` of this mode.
fn refuse_what_triggers_exclude(top: Section<'_>, findings: &mut Findings) {
    let duration = top.unsigned("duration_ms", 0..=u32::MAX, findings);
    if duration.is_some_and(|duration| duration > 0) {
        let message = "duration_ms ends the trace, and triggers would find none; remove it";
        findings.problem(top.position_of("duration_ms"), message);
    }
    if top.boolean("write_into_file", findings) == Some(true) {
        let message = "write_into_file leaves nothing to take a snapshot of; remove it";
        findings.problem(top.position_of("write_into_file"), message);
    }
}

fn read_sources(top: Section<'_>, buffers: usize, findings: &mut Findings) -> Sources {
    let mut sources = Sources::default();
    for source in top.sections("data_sources", findings) {
        let names = [
            "config",
            "producer_name_filter",
            "producer_name_regex_filter",
            "machine_name_filter",
        ];
        source.warn_unknown(&names, findings);
        let Some(config) = source.section("config", findings) else {
            if !source.has("config") {
                findings.problem(
                    source.position,
                    "a data source has no config; write config { name: \"linux.perf\" }",
                );
            }
            continue;
        };
        let target_buffer = config
            .unsigned("target_buffer", 0..=u32::MAX, findings)
            .unwrap_or(0);
        if buffers > 0 && target_buffer as usize >= buffers {
            let last = buffers - 1;
            let message = format!(
                "target_buffer is {target_buffer}, and the last buffer is {last}; buffers count from 0"
            );
            findings.problem(config.position_of("target_buffer"), message);
        }
        let Some(name) = config.text("name", findings) else {
            if !config.has("name") {
                findings.problem(
                    config.position,
                    "a data source has no name; write name: \"linux.perf\"",
                );
            }
            continue;
        };
        match name.as_str() {
            "linux.perf" => {
                let perf = config.section("perf_event_config", findings);
                sources.perf.push(read_perf(perf, target_buffer, findings));
            }
            "linux.ftrace" => {
                if let Some(ftrace) = config.section("ftrace_config", findings) {
                    let events = ftrace.texts("ftrace_events", findings);
                    let categories = ftrace.texts("atrace_categories", findings);
                    if has_scheduling(&events, &categories) {
                        sources.scheduling_buffer.get_or_insert(target_buffer);
                    }
                    sources.ftrace_events.extend(events);
                }
            }
            _ => sources.others.push(name),
        }
    }
    sources
}

fn has_scheduling(ftrace_events: &[String], atrace_categories: &[String]) -> bool {
    let names = ["sched/sched_switch", "sched_switch", "sched/*"];
    let mut events = ftrace_events.iter();
    events.any(|event| names.contains(&event.as_str()))
        || atrace_categories.iter().any(|category| category == "sched")
}
