//! `/api/v1/files` answers about a file what the server would answer had it been stored, and stores nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use candela_formats::Format;
use candela_formats::WriteOptions;
use candela_model::Labels;
use candela_model::Profile;
use candela_server::Limits;
use candela_server::ServerOptions;
use candela_store::ManualClock;
use serde_json::Value;
use serde_json::json;

use crate::support;
use crate::support::Answer;
use crate::support::TestServer;

const FILES: &str = "/api/v1/files";

/// The demo profile with `burn` twice as long, and 10 s later.
fn slower_profile() -> Profile {
    let mut profile = support::demo_profile();
    let series = &mut profile.series[0];
    series.start_ns += 10_000_000_000;
    for sample in &mut series.samples {
        if sample.value == 40 {
            sample.value = 110;
        }
    }
    profile
}

fn demo() -> Vec<u8> {
    support::pprof_bytes(&support::demo_profile())
}

fn about(server: &TestServer, body: &[u8]) -> Value {
    let answer = server.post(FILES, body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

fn form(server: &TestServer, path: &str, parts: &[(&str, &[u8])]) -> Answer {
    let mut body = Vec::new();
    for (name, bytes) in parts {
        let head = format!(
            "--cut\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"x\"\r\n\r\n"
        );
        body.extend(head.as_bytes());
        body.extend(*bytes);
        body.extend(b"\r\n");
    }
    body.extend(b"--cut--\r\n");
    let headers = [("Content-Type", "multipart/form-data; boundary=cut")];
    support::request(server.address, "POST", path, &headers, &body)
}

/// Every file below a folder with its content.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            let bytes = fs::read(&path).expect("a file");
            found.insert(path.display().to_string(), bytes);
        }
    }
    found
}

#[test]
fn whatever_we_write_and_read_is_shown() {
    let server = TestServer::start();
    let profile = support::demo_profile();
    let mut shown = 0;
    for format in Format::all().filter(|format| format.is_writable() && format.is_readable()) {
        let mut bytes = Vec::new();
        let written =
            candela_formats::write(format, &profile, &mut bytes, &WriteOptions::default());
        written.expect("a sound profile");
        let about = about(&server, &bytes);
        assert_eq!(about["format"], format.name());
        assert_eq!(about["bytes"], bytes.len());
        assert!(about["samples"].as_u64() > Some(0), "{about:#}");
        let top = server.post("/api/v1/files/top", &bytes);
        assert_eq!(top.status, 200, "{format}: {}", top.text());
        let top = top.json();
        assert_eq!(top["type"], about["default_type"], "{format}");
        let functions = top["functions"].to_string();
        assert!(functions.contains("\"burn\""), "{format}: {functions}");
        let types = about["types"].as_array().expect("types");
        let shown_type = types.iter().find(|it| it["id"] == about["default_type"]);
        assert_eq!(
            shown_type.expect("a type")["total"],
            top["total"],
            "{format}"
        );
        shown += 1;
    }
    assert!(shown > 8, "{shown}");
}

#[test]
fn a_file_answers_as_if_it_had_been_stored() {
    let server = TestServer::start();
    let stored = TestServer::with_demo_profile();
    let body = demo();
    let range = format!(
        "from={}&to={}",
        support::START_NS / 1_000_000,
        (support::START_NS + 10_000_000_000) / 1_000_000 + 1
    );
    for question in [
        "top",
        "top?sort=total&limit=1&hide=fn:main",
        "tree",
        "tree?ignore=fn:%5Eburn%24",
        "callers?function=%5Erest%24",
        "flamegraph?format=json&focus=fn:burn",
        "flamegraph?format=folded",
        "flamegraph?format=columns&path=main&path=rest",
        "series?step=10",
        "heatmap?step=10&buckets=4",
        "types",
    ] {
        let of_file = server.post(&format!("{FILES}/{question}"), &body);
        let sign = if question.contains('?') { '&' } else { '?' };
        let of_store = stored.get(&format!("/api/v1/{question}{sign}{range}"));
        assert_eq!(of_file.status, 200, "{question}: {}", of_file.text());
        assert_eq!(of_store.status, 200, "{question}: {}", of_store.text());
        assert_eq!(of_file.text(), of_store.text(), "{question}");
    }
}

#[test]
fn nothing_is_stored() {
    let server = TestServer::start();
    let before = contents(server.data_dir.path());
    let body = demo();
    about(&server, &body);
    for question in ["flamegraph", "top", "tree", "diff", "series", "pprof"] {
        let answer = server.post(&format!("{FILES}/{question}"), &body);
        assert_eq!(answer.status, 200, "{question}: {}", answer.text());
    }
    let parts = [("file", &body[..]), ("base_file", &body[..])];
    assert_eq!(form(&server, "/api/v1/files/diff", &parts).status, 200);

    assert_eq!(contents(server.data_dir.path()), before);
    assert_eq!(server.json("/api/v1/types")["types"], json!([]));
    assert_eq!(server.json("/api/v1/labels")["labels"], json!([]));
    assert_eq!(server.json("/api/v1/services")["services"], json!([]));
    let status = server.json("/api/v1/status");
    let counted = &status["tenants"]["anonymous"];
    for figure in ["series", "profiles", "samples", "bytes"] {
        assert_eq!(counted[figure], 0, "{figure}");
    }
    assert_eq!(status["storage"]["appended"], 0);
}

#[test]
fn a_file_is_asked_again_by_its_id() {
    let server = TestServer::start();
    let id = about(&server, &demo())["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let top = server.post(&format!("{FILES}/top?file={id}"), b"");
    assert_eq!(top.status, 200, "{}", top.text());
    assert_eq!(top.json()["total"], 100);

    let unknown = server.post(&format!("{FILES}/top?file={}", "0".repeat(32)), b"");
    assert_eq!(unknown.status, 404);
    assert_eq!(unknown.json()["code"], "file_not_held");
    let bad = server.post(&format!("{FILES}/top?file=../x"), b"");
    assert_eq!(
        (bad.status, &bad.json()["code"]),
        (400, &json!("bad_file_id"))
    );
    let none = server.post(&format!("{FILES}/top"), b"");
    assert_eq!(
        (none.status, &none.json()["code"]),
        (400, &json!("missing_file"))
    );
    // A body wins over an id: who sends the file again may leave the rest of the question as it was.
    let again = server.post(&format!("{FILES}/top?file={}", "0".repeat(32)), &demo());
    assert_eq!(again.status, 200, "{}", again.text());
}

#[test]
fn a_file_is_forgotten_when_nobody_asks_about_it() {
    let clock = Arc::new(ManualClock::at(support::NOW_NS));
    let server = TestServer::start_with(ServerOptions {
        clock: Arc::clone(&clock) as Arc<dyn candela_store::Clock>,
        ..support::options()
    });
    let id = about(&server, &demo())["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let ask = || server.post(&format!("{FILES}/top?file={id}"), b"").status;
    clock.advance(599_000_000_000);
    assert_eq!(ask(), 200);
    clock.advance(600_000_000_000);
    assert_eq!(ask(), 404);
}

#[test]
fn another_tenant_does_not_have_it() {
    let server = support::tenants::without_profiles();
    let ask = |path: &str, tenant: &str, body: &[u8]| {
        let secret = support::tenants::secret("reader");
        let bearer = format!("Bearer {secret}");
        let headers = [("Authorization", &bearer[..]), ("X-Scope-OrgID", tenant)];
        support::request(server.address, "POST", path, &headers, body)
    };
    let answer = ask(FILES, "alpha", &demo());
    assert_eq!(answer.status, 200, "a reader may look: {}", answer.text());
    let id = answer.json()["id"].as_str().expect("an id").to_owned();
    let path = format!("{FILES}/top?file={id}");
    assert_eq!(ask(&path, "alpha", b"").status, 200);
    assert_eq!(ask(&path, "beta", b"").status, 404);
    assert_eq!(ask(FILES, "alpha|beta", &demo()).status, 400);
    let nobody = support::request(server.address, "POST", FILES, &[], &demo());
    assert_eq!(nobody.status, 401);
}

#[test]
fn two_files_are_compared_with_statistics() {
    let server = TestServer::start();
    let after = support::pprof_bytes(&slower_profile());
    let parts = [("base_file", &demo()[..]), ("file", &after[..])];
    let answer = form(&server, "/api/v1/files/diff", &parts);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let diff = answer.json();
    assert_eq!(diff["before"]["total"], 100);
    assert_eq!(diff["after"]["total"], 170);
    assert_eq!(diff["functions"][0]["name"], "burn");
    assert_eq!(diff["functions"][0]["before"]["self"], 70);
    assert_eq!(diff["functions"][0]["after"]["self"], 140);
    assert_eq!(diff["before"]["samples"], 10, "100 ns of 10 ns each");
    // Both are held now, and the other way round is another question.
    let id = |bytes: &[u8]| {
        about(&server, bytes)["id"]
            .as_str()
            .expect("an id")
            .to_owned()
    };
    let path = format!(
        "/api/v1/files/diff?file={}&base_file={}",
        id(&demo()),
        id(&after)
    );
    let turned = server.post(&path, b"").json();
    assert_eq!(turned["after"]["total"], 100);
    assert_eq!(turned["before"]["total"], 170);
    // One beside itself: another part of its time.
    let milliseconds = support::START_NS / 1_000_000;
    let path = format!(
        "/api/v1/files/diff?file={}&base_from={}&base_to={}",
        id(&demo()),
        milliseconds - 1000,
        milliseconds
    );
    assert_eq!(server.post(&path, b"").json()["before"]["total"], 0);
    // And by default all of it.
    let path = format!("/api/v1/files/diff?file={}", id(&demo()));
    let same = server.post(&path, b"").json();
    assert_eq!(same["before"]["total"], same["after"]["total"]);
}

#[test]
fn instances_of_two_files_tell_how_much_is_chance() {
    let server = TestServer::start();
    let many = |profile: &Profile| {
        let mut many = profile.clone();
        let series = many.series.remove(0);
        for host in ["a", "b", "c", "d"] {
            let mut series = series.clone();
            series.labels = Labels::from_pairs([("host", host)]);
            for sample in &mut series.samples {
                sample.value *= 1000;
            }
            many.series.push(series);
        }
        let mut bytes = Vec::new();
        let json = Format::from_name("json").expect("a format");
        candela_formats::write(json, &many, &mut bytes, &WriteOptions::default())
            .expect("a sound profile");
        bytes
    };
    let (before, after) = (many(&support::demo_profile()), many(&slower_profile()));
    let parts = [("base_file", &before[..]), ("file", &after[..])];
    let diff = form(&server, "/api/v1/files/diff", &parts).json();
    assert_eq!(diff["statistics"]["clusters_before"], 4, "{diff:#}");
    assert_eq!(diff["statistics"]["is_paired"], true);
    let burn = &diff["functions"][0];
    assert_eq!(burn["name"], "burn");
    let confidence = burn.to_string();
    assert!(confidence.contains("\"is_significant\":true"), "{burn:#}");
}

#[test]
fn what_cannot_be_shown_says_what_it_was_taken_for() {
    let server = TestServer::start();
    let refused = |body: &[u8]| {
        let answer = server.post(FILES, body);
        (answer.status, answer.json())
    };
    let (status, error) = refused(&[0xff; 64]);
    assert_eq!(status, 415);
    assert!(error["hint"].to_string().contains("pprof"), "{error}");
    let demo = demo();
    let (status, error) = refused(&demo[..demo.len() / 2]);
    assert_eq!((status, &error["code"]), (400, &json!("bad_compression")));
    let plain = {
        let mut bytes = Vec::new();
        candela_formats::write_pprof(
            &support::demo_profile(),
            &mut bytes,
            &candela_formats::PprofOptions::default(),
        )
        .expect("a valid profile");
        bytes
    };
    let plain = candela_formats::inflate(&plain, 1 << 20)
        .expect("gzip")
        .into_owned();
    let (status, error) = refused(&plain[..plain.len() - 1]);
    assert_eq!(status, 400, "{error}");
    let message = error["message"].to_string();
    assert!(message.contains("taken for pprof"), "{message}");
    let (status, error) = refused(b"JAVA PROFILE 1.0.2\0\0\0\0\x08");
    assert_eq!(status, 415);
    assert!(
        error["message"].to_string().contains("heap dump"),
        "{error}"
    );
}

#[test]
fn a_file_is_bounded_as_an_upload_is() {
    let mut options = support::options();
    options.tenant_limits.profile_size = candela_server::Bound::new(4096);
    options.tenant_limits.samples_per_profile = candela_server::Bound::new(2);
    let server = TestServer::start_with(options);
    let bomb = gzip(&vec![b'x'; 1 << 20]);
    assert!(bomb.len() < 4096);
    for body in [&bomb[..], &vec![b'x'; 5000]] {
        let answer = server.post(FILES, body);
        assert_eq!(answer.status, 413, "{}", answer.text());
    }
    // Each part by itself, not both together.
    let parts = [("file", &[b'x'; 5000][..]), ("base_file", &[b'x'; 10][..])];
    assert_eq!(form(&server, "/api/v1/files/diff", &parts).status, 413);
    let answer = server.post(FILES, b"a;b 1\na;c 2\na;d 3\n");
    assert_eq!(answer.status, 422, "{}", answer.text());
    assert_eq!(answer.json()["code"], "too_many_samples");
    let headers = [("Content-Encoding", "gzip")];
    let answer = support::request(server.address, "POST", FILES, &headers, &bomb);
    assert_eq!(answer.status, 413, "{}", answer.text());
}

#[test]
fn a_file_that_is_too_large_to_be_held_is_answered_all_the_same() {
    let server = TestServer::start_with(ServerOptions {
        limits: Limits {
            held_files_bytes: 100,
            held_files_idle: Duration::from_secs(600),
            ..Limits::default()
        },
        ..support::options()
    });
    let id = about(&server, &demo())["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    assert_eq!(
        server.post(&format!("{FILES}/top?file={id}"), b"").status,
        404
    );
    assert_eq!(
        server
            .post(&format!("{FILES}/top?file={id}"), &demo())
            .status,
        200
    );
}

#[test]
fn a_file_without_a_time_has_none() {
    let server = TestServer::start();
    let folded = about(&server, b"main;burn 70\nmain;rest 30\n");
    assert_eq!(folded["is_dated"], false);
    assert_eq!(folded["format"], "folded");
    let dated = about(&server, &demo());
    assert_eq!(dated["is_dated"], true);
    assert_eq!(dated["from"], support::START_NS / 1_000_000);
    assert_eq!(dated["profiles"], 1);
    assert_eq!(dated["default_type"], support::cpu_type().to_string());
}

#[test]
fn files_of_other_tools_are_shown() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let Ok(manifest) = fs::read_to_string(corpus.join("MANIFEST.tsv")) else {
        eprintln!("skipped: there is no corpus beside the checkout");
        return;
    };
    let server = TestServer::start();
    let mut shown = 0;
    for line in manifest.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [file, _, _, _, bytes, role, ..] = fields[..] else {
            continue;
        };
        let is_small = bytes.parse::<u64>().is_ok_and(|bytes| bytes < 1 << 20);
        if role != "input" || !is_small {
            continue;
        }
        let Ok(body) = fs::read(corpus.join(file)) else {
            continue;
        };
        let answer = server.post(FILES, &body);
        assert!(answer.status < 500, "{file}: {}", answer.text());
        if answer.status != 200 {
            continue;
        }
        let about = answer.json();
        let id = about["id"].as_str().expect("an id");
        for question in ["top", "flamegraph?format=json"] {
            let sign = if question.contains('?') { '&' } else { '?' };
            let answer = server.post(&format!("{FILES}/{question}{sign}file={id}"), b"");
            assert_eq!(answer.status, 200, "{file}: {}", answer.text());
        }
        shown += 1;
    }
    assert!(shown > 20, "{shown} files");
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}
