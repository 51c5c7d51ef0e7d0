//! `DELETE /api/v1/data`: what is erased is gone, and nothing else is.

use std::fs;
use std::path::Path;

use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Location;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;
use candela_model::SERVICE_NAME_LABEL;
use candela_model::Sample;
use serde_json::Value;
use serde_json::json;

use crate::support;
use crate::support::TestServer;

/// Names that nothing else in the data directory could have.
const SECRET: &str = "zq_the_secret_function_of_payroll";
const KEPT: &str = "zq_the_function_that_stays";

const PAYROLL: &str = "query=%7Bservice_name%3D%22payroll%22%7D";

/// A profile of one function; random names do not compress, so that they are found in files.
fn profile(service: &str, function: &str, profile_type: ProfileType, start_ns: i64) -> Profile {
    let mut profile = Profile::default();
    let function = profile.symbols.intern_function(function, "", "secret.c", 1);
    let location = Location::new(FrameKind::Native, 0x1000);
    let location = profile
        .symbols
        .intern_location(&location, &[(function, 1, 0)]);
    let stack = profile.stacks.intern(&[location]);
    let labels = Labels::from_pairs([(SERVICE_NAME_LABEL, service)]);
    let mut series = ProfileSeries {
        start_ns,
        duration_ns: 10_000_000_000,
        period: 10,
        ..ProfileSeries::new(labels, profile_type)
    };
    series.samples = vec![Sample::new(stack, 10)];
    profile.series.push(series);
    profile
}

fn store(server: &TestServer, profile: Profile) {
    let appended = server.local_ingest.append(profile);
    server.runtime.block_on(appended).expect("it is stored");
}

/// A server with a secret and with something that is none.
fn server_with_both() -> TestServer {
    let server = TestServer::start();
    let cpu = support::cpu_type;
    store(
        &server,
        profile("payroll", SECRET, cpu(), support::START_NS),
    );
    store(&server, profile("checkout", KEPT, cpu(), support::START_NS));
    server
}

/// The files below a folder that have a text, as it is or in any of their gzip or zstd frames.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
            continue;
        }
        let mut bytes = fs::read(&path).expect("a file");
        // Segments of the log are allocated in advance, and empty at their end.
        let end = bytes.iter().rposition(|byte| *byte != 0);
        bytes.truncate(end.map_or(0, |last| last + 1));
        if has(&bytes, text) || has(&without_zstd(&bytes), text) {
            found.push(path.display().to_string());
        }
    }
    found
}

fn has(bytes: &[u8], text: &str) -> bool {
    let text = text.as_bytes();
    bytes.windows(text.len()).any(|window| window == text)
}

/// What the zstd frames of a file hold: pages of Parquet and records of the log.
fn without_zstd(bytes: &[u8]) -> Vec<u8> {
    const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    let mut content = Vec::new();
    for start in 0..bytes.len().saturating_sub(MAGIC.len()) {
        if bytes[start..].starts_with(&MAGIC)
            && let Ok(decoder) = zstd::stream::read::Decoder::with_buffer(&bytes[start..])
        {
            let mut decoder = decoder.single_frame();
            let _ = std::io::Read::read_to_end(&mut decoder, &mut content);
        }
    }
    content
}

fn functions(server: &TestServer) -> Vec<String> {
    let top = server.json("/api/v1/top?from=now-1d");
    let rows = top["functions"].as_array().expect("an array");
    let names = rows.iter().map(|row| row["name"].as_str().expect("text"));
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort();
    names
}

#[test]
fn what_is_erased_is_in_no_file() {
    for is_flushed in [false, true] {
        let server = server_with_both();
        if is_flushed {
            let flushed = server.runtime.block_on(server.store.flush());
            flushed.expect("it is flushed");
        }
        let folder = server.data_dir.path();
        assert_ne!(files_with(folder, SECRET), Vec::<String>::new());
        assert_eq!(functions(&server), [KEPT, SECRET]);

        let answer = server.delete(&format!("/api/v1/data?{PAYROLL}"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let erased = answer.json();
        assert_eq!(erased["schema"], "candela/erased/v1");
        assert_eq!(erased["profiles"], 1);
        assert_eq!(erased["samples"], 1);
        let bytes = |field: &str| erased[field].as_u64().expect("a number");
        assert!(bytes("bytes_before") > bytes("bytes_after"), "{erased}");

        assert_eq!(files_with(folder, SECRET), Vec::<String>::new());
        assert_ne!(files_with(folder, KEPT), Vec::<String>::new());
        assert_eq!(functions(&server), [KEPT]);
        let services = server.json("/api/v1/label-values?label=service_name");
        assert_eq!(services["values"], json!(["checkout"]));
        let tenant = &server.json("/api/v1/status")["tenants"]["anonymous"];
        let counts = json!({"requests": 1, "profiles": 1, "samples": 1});
        assert_eq!(tenant["erased"], counts);

        let again = server.delete(&format!("/api/v1/data?{PAYROLL}")).json();
        assert_eq!(again["profiles"], 0);
        assert!(again["hint"].is_string(), "{again}");
    }
}

#[test]
fn a_block_that_cannot_be_read_is_named() {
    let server = server_with_both();
    let flushed = server.runtime.block_on(server.store.flush());
    flushed.expect("it is flushed");
    let all = candela_store::TimeRange::ALL;
    let snapshot = server.store.snapshot("anonymous", all).expect("a snapshot");
    let block = &snapshot.blocks[0];
    let error = candela_store::BlockError {
        block_id: block.meta().block_id.clone(),
        kind: candela_store::BlockErrorKind::Damaged,
        reason: "/secret/blocks/1.parquet is damaged".to_owned(),
    };
    server.store.report(&error).expect("it is set aside");
    let identifier = support::cpu_type();
    for rest in [String::new(), format!("&type={identifier}")] {
        let answer = server.delete(&format!("/api/v1/data?{PAYROLL}{rest}"));
        assert_eq!(answer.status, 500, "{}", answer.text());
        assert_eq!(answer.json()["code"], "not_erased");
        let message = answer.json()["message"].as_str().expect("text").to_owned();
        assert!(message.contains(&error.block_id), "{message}");
        assert!(message.contains("rebuild-catalog"), "{message}");
        assert!(!message.contains(&error.reason), "{message}");
    }
}

#[test]
fn status_says_how_long_data_is_kept() {
    let server = server_with_both();
    let flushed = server.runtime.block_on(server.store.flush());
    flushed.expect("it is flushed");
    let storage = server.json("/api/v1/status")["storage"].clone();
    let retention = &storage["retention"];
    assert_eq!(retention["max_bytes"], 50_000_000_000_u64);
    assert_eq!(retention["max_volume_percent"], 20);
    assert_eq!(retention["rules"], json!([]));
    let tiers = retention["tiers"].as_array().expect("an array");
    let days = tiers.iter().map(|tier| {
        let seconds = tier["max_age_seconds"].as_u64().expect("a number");
        (tier["tier"].as_str().expect("text"), seconds / 86_400)
    });
    let days: Vec<(&str, u64)> = days.collect();
    assert_eq!(days, [("raw", 14), ("ten_minutes", 90), ("hourly", 400)]);
    assert_eq!(tiers[0]["blocks"], 1);
    assert_eq!(tiers[0]["samples"], 2);
    assert_eq!(storage["compaction"]["failed_jobs"], 0);
    let metrics = server.get("/metrics").text();
    let line = "candela_store_tier_retention_seconds{tier=\"raw\"} 1209600";
    assert!(metrics.contains(line), "{metrics}");
}

#[test]
fn only_the_type_and_the_range_that_were_asked_for_are_erased() {
    let server = TestServer::start();
    let earlier_ns = support::START_NS - 600_000_000_000;
    let allocations = ProfileType::new("memory", "alloc_space", "bytes", "space", "bytes");
    let cpu = support::cpu_type;
    store(&server, profile("payroll", "early", cpu(), earlier_ns));
    store(
        &server,
        profile("payroll", "late", cpu(), support::START_NS),
    );
    store(
        &server,
        profile("payroll", "heap", allocations, support::START_NS),
    );
    let erase = |rest: &str| -> Value {
        let answer = server.delete(&format!("/api/v1/data?{PAYROLL}&{rest}"));
        assert_eq!(answer.status, 200, "{rest}: {}", answer.text());
        answer.json()
    };
    let nothing = erase("type=off_cpu");
    assert_eq!(nothing["profiles"], 0);
    let hint = nothing["hint"].as_str().expect("a hint");
    assert!(hint.contains("off_cpu"), "{hint}");
    assert_eq!(functions(&server), ["early", "late"]);

    let early = erase("type=cpu&to=now-5m");
    assert_eq!(early["profiles"], 1);
    assert_eq!(early["type"], support::cpu_type().to_string());
    assert_eq!(functions(&server), ["late"]);

    assert_eq!(erase("type=alloc")["profiles"], 1);
    assert_eq!(functions(&server), ["late"]);
    assert_eq!(erase("")["profiles"], 1);
    assert_eq!(functions(&server), Vec::<String>::new());
}

#[test]
fn what_would_erase_all_by_mistake_is_refused() {
    let server = server_with_both();
    let cases = [
        ("", "missing_parameter"),
        ("?query=", "missing_parameter"),
        ("?query=%7B%7D", "selector_too_wide"),
        ("?query=%7Bservice_name%3D~%22.*%22%7D", "selector_too_wide"),
        ("?query=%7Bpod!%3D%22a%22%7D", "selector_too_wide"),
        ("?query=%7Bservice_name", "bad_selector"),
        ("?query=%7Ba%3D%22b%22%7D&from=now&to=now-1h", "bad_range"),
        ("?query=%7Ba%3D%22b%22%7D&form=now-1h", "unknown_parameter"),
    ];
    for (rest, code) in cases {
        let answer = server.delete(&format!("/api/v1/data{rest}"));
        assert_eq!(answer.status, 400, "{rest}: {}", answer.text());
        assert_eq!(answer.json()["code"], code, "{rest}");
    }
    assert_eq!(functions(&server), [KEPT, SECRET]);
}

#[test]
fn a_page_of_another_origin_erases_nothing() {
    let server = server_with_both();
    let path = format!("/api/v1/data?{PAYROLL}");
    for header in [
        ("Origin", "http://evil.example"),
        ("Host", "evil.example"),
        ("Sec-Fetch-Site", "cross-site"),
    ] {
        let answer = support::request(server.address, "DELETE", &path, &[header], b"");
        assert_eq!(answer.status, 403, "{header:?}: {}", answer.text());
    }
    assert_eq!(functions(&server), [KEPT, SECRET]);
}
