//! Walks `status_codes.tsv`: every request there gets the status, code and message it says.

use std::io::Write;

use candela_formats::OtlpOptions;
use candela_model::Labels;
use candela_model::Profile;
use candela_model::SERVICE_NAME_LABEL;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use prost::Message;

use crate::support;
use crate::support::TestServer;

#[test]
fn every_request_gets_its_status() {
    let server = TestServer::with_demo_profile();
    let mut failures = Vec::new();
    for line in include_str!("status_codes.tsv").lines() {
        if line.starts_with('#') {
            continue;
        }
        let fields: Vec<&str> = line.split('\t').collect();
        let [method, path, headers, body, status, code, part] = fields[..] else {
            panic!("seven fields: {line:?}");
        };
        if let Err(failure) = check(&server, [method, path, headers, body, status, code, part]) {
            failures.push(format!("{line}\n    {failure}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));

    let metrics = server.get("/metrics").text();
    assert!(!metrics.contains("code=\"500\""), "{metrics}");
    let stored = server.json("/api/v1/label-values?label=service_name");
    assert_eq!(
        stored["values"],
        serde_json::json!(["checkout", "from-otlp", "other"])
    );
}

fn check(server: &TestServer, fields: [&str; 7]) -> Result<(), String> {
    let [method, path, headers, body_name, status, code, part] = fields;
    let headers: Vec<(&str, &str)> = headers
        .split('|')
        .filter_map(|header| header.split_once(": "))
        .collect();
    let path = path
        .replace(' ', "%20")
        .replace('"', "%22")
        .replace('{', "%7B")
        .replace('}', "%7D");
    let answer = support::request(server.address, method, &path, &headers, &body(body_name));
    if answer.status.to_string() != status {
        return Err(format!("{} {}", answer.status, answer.text()));
    }
    if answer.status < 400 {
        return Ok(());
    }
    let error = answer.json();
    let text = |field: &str| {
        error[field]
            .as_str()
            .ok_or(format!("no {field} in {error}"))
    };
    if text("code")? != code {
        return Err(error.to_string());
    }
    let words = format!("{}\n{}", text("message")?, text("hint")?);
    if !words.contains(part) || text("message")?.contains('\n') {
        return Err(error.to_string());
    }
    Ok(())
}

fn body(name: &str) -> Vec<u8> {
    let demo = || support::pprof_bytes(&support::demo_profile());
    match name {
        "" | "empty" => Vec::new(),
        "demo" => demo(),
        "demo.plain" => plain_pprof(&support::demo_profile()),
        "demo.gz" => gzip(&demo()),
        "demo.zst" => zstd::encode_all(&demo()[..], 1).expect("zstd writes"),
        "truncated" => demo()[..demo().len() / 2].to_vec(),
        "truncated.plain" => {
            let plain = plain_pprof(&support::demo_profile());
            plain[..plain.len() - 1].to_vec()
        }
        "dangling" => dangling_pprof(),
        "garbage" => vec![0xff; 64],
        "future" => support::pprof_bytes(&changed(|profile| {
            profile.series[0].start_ns = support::NOW_NS + 3_600_000_000_000;
        })),
        "negative" => support::pprof_bytes(&changed(|profile| {
            profile.series[0].samples[1].value = -5;
        })),
        "bomb" => gzip(&bomb()),
        "bomb.zst" => zstd::encode_all(&bomb()[..], 1).expect("zstd writes"),
        "otlp" => otlp(),
        "otlp.json" => otlp_json(),
        "otlp.json.zst" => zstd::encode_all(&otlp_json()[..], 1).expect("zstd writes"),
        "otlp.gz" => gzip(&otlp()),
        "logs" => logs(),
        "logs.gz" => gzip(&logs()),
        "logs.json" => LOGS_JSON.as_bytes().to_vec(),
        other => panic!("no body {other:?}"),
    }
}

fn changed(change: impl FnOnce(&mut Profile)) -> Profile {
    let mut profile = support::demo_profile();
    change(&mut profile);
    profile
}

fn plain_pprof(profile: &Profile) -> Vec<u8> {
    let mut bytes = Vec::new();
    let options = candela_formats::PprofOptions {
        compress: false,
        ..candela_formats::PprofOptions::default()
    };
    candela_formats::write_pprof(profile, &mut bytes, &options).expect("a valid profile");
    bytes
}

/// A pprof by hand: a sample type, and a sample of a location that does not exist.
fn dangling_pprof() -> Vec<u8> {
    let mut bytes = vec![0x0a, 4, 0x08, 1, 0x10, 2]; // sample_type { type: 1, unit: 2 }
    bytes.extend([0x12, 6, 0x0a, 1, 99, 0x12, 1, 5]); // sample { location_id: [99], value: [5] }
    for text in ["", "cpu", "nanoseconds"] {
        bytes.extend([0x32, text.len() as u8]); // string_table
        bytes.extend(text.as_bytes());
    }
    bytes
}

/// A pprof with one string of 64 MiB, which compresses to next to nothing.
fn bomb() -> Vec<u8> {
    let mut bytes = plain_pprof(&support::demo_profile());
    bytes.extend([0x32, 0x80, 0x80, 0x80, 0x20]); // string_table, length 2^26
    bytes.resize(bytes.len() + (64 << 20), b'x');
    bytes
}

const LOGS_JSON: &str = r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":
    "{\"eventType\":\"ebpf.CPUSample\",\"serviceName\":\"from-otlp\",\"sampleWeight\":1,\"durationNs\":5}"}}]}]}]}"#;

fn logs() -> Vec<u8> {
    let limits = candela_formats::Limits::default();
    let request = candela_formats::logs_request_from_json(
        LOGS_JSON.as_bytes(),
        &limits,
        &mut candela_formats::Report::default(),
    );
    request.expect("a request").encode_to_vec()
}

fn otlp() -> Vec<u8> {
    otlp_request().encode_to_vec()
}

fn otlp_json() -> Vec<u8> {
    candela_formats::otlp_request_to_json(&otlp_request())
        .to_string()
        .into_bytes()
}

fn otlp_request() -> ExportProfilesServiceRequest {
    let profile = changed(|profile| {
        profile.series[0].labels = Labels::from_pairs([(SERVICE_NAME_LABEL, "from-otlp")]);
    });
    candela_formats::encode_otlp(&profile, &OtlpOptions::default())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}
