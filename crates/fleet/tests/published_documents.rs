//! Documents as the published guide has them are taken as they are.

use candela_fleet::DaemonBody;
use candela_fleet::FleetDocument;
use candela_fleet::NoteKind;
use candela_fleet::PerfettoTrigger;
use candela_fleet::trace_config::SamplingRate;

const CONFIG_TEXT: &str = "buffers {\n  size_kb: 102400\n  fill_policy: RING_BUFFER\n}\n\ndata_sources {\n  config {\n    name: \"linux.perf\"\n    perf_event_config {\n      all_cpus: true\n      sampling_frequency: 100\n    }\n  }\n}\n\ntrigger_config {\n  trigger_mode: CLONE_SNAPSHOT\n  triggers {\n    name: \"engine_traces\"\n    stop_delay_ms: 1000\n  }\n}\n";

#[test]
fn the_perf_collector_of_the_guide_is_taken_unchanged() {
    let text = r#"{
  "common_persistence_specs": {"namespace": "background", "service_account_name": "writer"},
  "observability_daemons": [
    {
      "keep_running_when_suspended": true,
      "perf_collector": {
        "perf_polling_frequency_hz": 99,
        "call_graph": true,
        "max_dumps_retained": 3,
        "dump_duration_seconds": 120,
        "bucket_subdirectory": "perf-data",
        "export_to": "s3://your-bucket-name"
      }
    }
  ],
  "writers": []
}"#;
    let accepted = FleetDocument::read(text).unwrap();
    assert_eq!(accepted.notes, []);
    let given: candela_fleet::Json = serde_json::from_str(text).unwrap();
    assert_eq!(accepted.document.to_json(), given);
    let daemon = &accepted.document.daemons()[0];
    assert!(daemon.keeps_running_when_suspended());
    let request = daemon.effective_request();
    assert_eq!(request.cpu_quantity().unwrap().thousandths(), 25);
    assert_eq!(request.memory_quantity().unwrap().bytes(), 64 << 20);
}

#[test]
fn the_perfetto_daemon_of_the_guide_gets_a_timeout_and_nothing_else() {
    let config_text = serde_json::to_string(CONFIG_TEXT).unwrap();
    let text = format!(
        r#"{{"observability_daemons": [{{"perfetto_daemon": {{
            "config_text": {config_text}, "trigger": "PERFETTO_TRIGGER_TIME_INTERVAL",
            "interval": 60000, "trigger_name": "engine_traces", "max_retained_runs": 5,
            "export_to": "gs://your-bucket-name", "bucket_subdirectory": "perfetto"}}}}],
            "common_persistence_specs": {{"google_cloud_project": "p", "service_account_name": "s"}}}}"#
    );
    let accepted = FleetDocument::read(&text).unwrap();
    let [note] = accepted.notes.as_slice() else {
        panic!("one note: {:?}", accepted.notes);
    };
    assert_eq!(note.kind, NoteKind::Adjustment);
    let DaemonBody::PerfettoDaemon(daemon) = &accepted.document.daemons()[0].body else {
        panic!("a perfetto daemon");
    };
    let adjusted = daemon.config_text.as_deref().unwrap();
    assert_eq!(
        adjusted.replacen("  trigger_timeout_ms: 518400000\n", "", 1),
        CONFIG_TEXT
    );
    assert_eq!(daemon.trigger, Some(PerfettoTrigger::TimeInterval));
    let config = daemon.trace_config().unwrap();
    assert_eq!(config.trigger.timeout_ms, Some(518_400_000));
    assert_eq!(config.perf_sources[0].rate, SamplingRate::Frequency(100));
    // What was adjusted is accepted as it is.
    assert_eq!(accepted.document.accept().unwrap().notes, []);
}
