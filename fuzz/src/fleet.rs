//! The fleet's document, and the Perfetto configurations in it.

use candela_fleet::FleetDocument;
use candela_fleet::TraceConfig;

const CONFIG: &str = r#"# a ring
buffers: { size_kb: 0x400 fill_policy: RING_BUFFER }
data_sources { config < name: 'linux.' "perf"; perf_event_config {
  timebase { frequency: 99 } callstack_sampling { scope { target_cmdline: ["a", "\x41\101"] } } } > }
trigger_config { trigger_mode: CLONE_SNAPSHOT triggers [{ name: "moment", stop_delay_ms: 1e1 }] }
[a.b/c]: -1.5
"#;

/// What is accepted is written so that it is accepted again, and as it is.
pub(crate) fn document(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let Ok(accepted) = FleetDocument::read(text) else {
        return;
    };
    let written = accepted.document.to_string();
    let again = FleetDocument::read(&written)
        .unwrap_or_else(|problems| panic!("{text:?} is written {written:?}: {problems}"));
    assert_eq!(again.document, accepted.document, "of {text:?}");
}

pub(crate) fn document_seeds() -> Vec<Vec<u8>> {
    let config = CONFIG.replace("1e1", "10");
    let config_text = serde_json::json!(config).to_string();
    let perfetto = format!(
        r#"{{"observabilityDaemons": [{{"limit": {{"memory": "1Gi"}}, "perfettoDaemon": {{
        "configText": {config_text}, "trigger": 1, "interval": "60000",
        "trigger_name": "moment", "export_to": "s3://bucket"}}}}]}}"#
    );
    let texts = [
        perfetto.as_str(),
        r#"{"suspended": false, "writers": [{"a": 1.5}], "common_persistence_specs": {"x": null},
        "observability_daemons": [{"keep_running_when_suspended": true, "request": {"cpu": 0.5},
        "perf_collector": {"export_to": "gs://bucket", "bucket_subdirectory": "a/b",
        "process_filter": {"comm": ["api*"]}, "max_dumps_retained": 3}}]}"#,
        "{}",
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}

pub(crate) fn text_proto(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = TraceConfig::read(text, Some("moment"));
    }
}

pub(crate) fn text_proto_seeds() -> Vec<Vec<u8>> {
    vec![CONFIG.as_bytes().to_vec()]
}
