//! What is taken from a Perfetto configuration.

use candela_fleet::TraceConfig;
use candela_fleet::trace_config::Callstacks;
use candela_fleet::trace_config::FillPolicy;
use candela_fleet::trace_config::PerfEvent;
use candela_fleet::trace_config::SamplingRate;
use candela_fleet::trace_config::UserFrames;

const TRIGGER: &str = r#"trigger_config {
  trigger_mode: CLONE_SNAPSHOT
  triggers { name: "other" stop_delay_ms: 5 }
  triggers { name: "moment" stop_delay_ms: 1000 }
}
"#;

fn read(more: &str) -> TraceConfig {
    let text = format!("buffers {{ size_kb: 102400 fill_policy: RING_BUFFER }}\n{more}\n{TRIGGER}");
    let read = TraceConfig::read(&text, Some("moment")).expect("a sound text");
    assert_eq!(read.warnings, []);
    read.config
}

#[test]
fn the_old_form_of_linux_perf_is_read() {
    let config = read(
        r#"data_sources { config { name: "linux.perf" perf_event_config {
             all_cpus: true sampling_frequency: 100 kernel_frames: true
             target_cmdline: "api" target_cmdline: "worker*" exclude_pid: [1, 2] } } }"#,
    );
    assert_eq!(config.buffer_bytes(), 102_400 * 1024);
    assert_eq!(config.buffers[0].fill_policy, FillPolicy::RingBuffer);
    assert_eq!(config.trigger.stop_delay_ms, 1000);
    assert_eq!(config.trigger.timeout_ms, None);
    let perf = &config.perf_sources[0];
    assert_eq!(perf.rate, SamplingRate::Frequency(100));
    assert_eq!(perf.event, PerfEvent::CpuClock);
    let callstacks = Callstacks {
        kernel_frames: true,
        user_frames: UserFrames::Dwarf,
    };
    assert_eq!(perf.callstacks, Some(callstacks));
    assert_eq!(perf.scope.target_cmdlines, ["api", "worker*"]);
    assert_eq!(perf.scope.exclude_pids, [1, 2]);
    assert!(!config.wants_scheduling);
}

#[test]
fn the_new_form_of_linux_perf_is_read() {
    let config = read(
        r#"data_sources { config { name: "linux.perf" perf_event_config {
             timebase { frequency: 80 counter: HW_CPU_CYCLES timestamp_clock: PERF_CLOCK_MONOTONIC }
             callstack_sampling {
               scope { target_cmdline: "surfaceflinger" target_pid: 7 additional_cmdline_count: 3 }
               kernel_frames: false user_frames: UNWIND_FRAME_POINTER }
             target_cpu: 0 target_cpu: 2
             followers { counter: HW_INSTRUCTIONS }
             ring_buffer_pages: 256 ring_buffer_read_period_ms: 100 } } }"#,
    );
    let perf = &config.perf_sources[0];
    assert_eq!(perf.rate, SamplingRate::Frequency(80));
    assert_eq!(perf.event, PerfEvent::Counter("HW_CPU_CYCLES".to_owned()));
    let callstacks = perf.callstacks.unwrap();
    assert!(!callstacks.kernel_frames);
    assert_eq!(callstacks.user_frames, UserFrames::FramePointer);
    assert_eq!(perf.scope.target_pids, [7]);
    assert_eq!(perf.scope.additional_cmdline_count, Some(3));
    assert_eq!(perf.target_cpus, [0, 2]);
    assert_eq!(perf.followers, 1);
    assert_eq!(perf.ring_buffer_pages, Some(256));
    assert_eq!(perf.ring_buffer_read_period_ms, Some(100));
}

#[test]
fn other_events_and_rates_are_read() {
    let config = read(
        r#"data_sources { config { name: "linux.perf" perf_event_config { timebase {
             period: 1000 tracepoint { name: "sched:sched_switch" filter: "prev_pid > 0" } } } } }
           data_sources { config { name: "linux.perf" perf_event_config { timebase {
             poll_period_ms: 50 raw_event { type: 4 config: 0x1c2 } } } } }
           data_sources { config { name: "linux.perf" } }"#,
    );
    let [tracepoint, raw, default] = config.perf_sources.as_slice() else {
        panic!("three sources: {config:?}");
    };
    let switches = PerfEvent::Tracepoint {
        name: "sched:sched_switch".to_owned(),
        filter: Some("prev_pid > 0".to_owned()),
    };
    assert_eq!(
        (&tracepoint.event, tracepoint.rate),
        (&switches, SamplingRate::Period(1000))
    );
    let numbers = PerfEvent::Raw {
        kind: 4,
        config: 0x1c2,
    };
    assert_eq!((&raw.event, raw.rate), (&numbers, SamplingRate::Poll(50)));
    assert_eq!(default.rate, SamplingRate::Frequency(10));
    assert_eq!(default.callstacks, None);
}

#[test]
fn scheduling_is_asked_for_in_several_words() {
    let perf = "data_sources { config { name: \"linux.perf\" } }";
    for (events, wanted) in [
        ("ftrace_events: \"sched/sched_switch\"", true),
        ("ftrace_events: [\"sched_wakeup\", \"sched_switch\"]", true),
        ("ftrace_events: \"sched/*\"", true),
        ("atrace_categories: \"sched\"", true),
        ("ftrace_events: \"power/cpu_idle\"", false),
    ] {
        let source = format!(
            "data_sources {{ config {{ name: \"linux.ftrace\" ftrace_config {{ {events} }} }} }}"
        );
        let config = read(&format!("{perf} {source}"));
        assert_eq!(config.wants_scheduling, wanted, "{events}");
    }
    let second = "data_sources { config { name: \"linux.ftrace\" target_buffer: 1 ftrace_config { ftrace_events: \"sched_switch\" } } }";
    let buffers = "buffers { size_kb: 64 }";
    assert_eq!(
        read(&format!("{buffers} {perf} {second}")).scheduling_buffer,
        1
    );
    let config = read(&format!(
        "{perf} data_sources {{ config {{ name: \"track_event\" }} }}"
    ));
    assert_eq!(config.other_sources, ["track_event"]);
}
