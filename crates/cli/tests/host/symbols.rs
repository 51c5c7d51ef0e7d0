//! Names that come after the profiles: uploaded, or from a debuginfod server.

use std::collections::BTreeMap;
use std::io::Read;
use std::io::Write;
use std::net::TcpListener;
use std::ops::Range;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Output;
use std::time::Duration;

use crate::support;
use crate::support::Program;
use crate::support::Running;
use candela_formats::PprofOptions;
use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Location;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_symbols::ObjectFile;
use candela_testing::expect_within;
use candela_testing::more_than;
use serde_json::Value;

/// Two calls are inlined into `outer`.
const PROGRAM: &str = r#"
#include <stdio.h>
static inline __attribute__((always_inline)) int innermost(int n) {
    volatile int sum = 0;
    for (int i = 0; i < n; i++)
        sum += i;
    return sum;
}
static inline __attribute__((always_inline)) int between(int n) { return innermost(n) * 3; }
static __attribute__((noinline)) int outer(int n) { return between(n + 1); }
int main(int argc, char **argv) {
    printf("%d\n", outer(argc));
    return 0;
}
"#;

const SERVICE: &str = "query=%7Bservice_name%3D%22shop%22%7D&from=now-1h&to=now-1m";

/// `full`, `full.debug` and `stripped` of one build.
struct Built {
    folder: tempfile::TempDir,
    build_id: String,
}

impl Built {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }
}

fn tool(folder: &Path, name: &str, arguments: &[&str]) -> String {
    let output = Command::new(name)
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(
        output.status.success(),
        "{name} {arguments:?}: {}",
        support::stderr(&output)
    );
    support::stdout(&output)
}

fn build(test: &str) -> Option<Built> {
    let tools = ["gcc", "objcopy", "strip", "nm", "addr2line"];
    if !tools.iter().all(|name| support::has_tool(test, name)) {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("shop.c"), PROGRAM).unwrap();
    let compile = [
        "-O2",
        "-g",
        "-fPIE",
        "-pie",
        "-Wl,--build-id",
        "-o",
        "full",
        "shop.c",
    ];
    tool(folder.path(), "gcc", &compile);
    tool(
        folder.path(),
        "objcopy",
        &["--only-keep-debug", "full", "full.debug"],
    );
    tool(folder.path(), "strip", &["-o", "stripped", "full"]);
    let object = ObjectFile::open(&folder.path().join("stripped")).unwrap();
    Some(Built {
        build_id: object.build_id().to_string(),
        folder,
    })
}

/// A profile as a profiler without symbols sends it, with a sample at every address of `outer`; and
/// the value of each stack under the names that addr2line gives.
fn profile(built: &Built) -> (Vec<u8>, BTreeMap<String, i64>) {
    let nm = tool(built.folder.path(), "nm", &["-S", "full"]);
    let find = |wanted: &str| -> (u64, u64) {
        let line = nm
            .lines()
            .find(|line| line.ends_with(&format!(" {wanted}")))
            .unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        let number = |digits| u64::from_str_radix(digits, 16).unwrap();
        (number(words[0]), number(words[1]))
    };
    let ((outer, size), (main, _)) = (find("outer"), find("main"));
    let object = ObjectFile::open(&built.path("full")).unwrap();
    let mut segments = object.segments().iter();
    // Where the kernel would map the code.
    let code = segments.find(|segment| segment.executable).unwrap();
    let bias = 0x5555_1234_0000_u64;
    let mut profile = Profile::default();
    let symbols = &mut profile.symbols;
    let mapping = Mapping {
        memory_start: bias + code.address / 4096 * 4096,
        memory_limit: bias + (code.address + code.memory_size).next_multiple_of(4096),
        file_offset: code.file_offset / 4096 * 4096,
        file: symbols.strings.intern("/srv/shop"),
        build_id: symbols.strings.intern(&built.build_id),
    };
    let mapping = symbols.intern_mapping(mapping);
    let profile_type = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
    let mut series = ProfileSeries::new(Labels::default(), profile_type.parse().unwrap());
    let now = std::time::SystemTime::now();
    let now = now.duration_since(std::time::UNIX_EPOCH).unwrap();
    series.start_ns = i64::try_from(now.as_nanos()).unwrap() - 600_000_000_000;
    (series.duration_ns, series.period) = (10_000_000_000, 1);
    let mut named = BTreeMap::new();
    for (address, functions) in (outer..).zip(functions_at(built, outer..outer + size)) {
        let mut place = |linked: u64| {
            let place = Location::new(FrameKind::Native, bias + linked).in_mapping(mapping);
            profile.symbols.intern_location(&place, &[])
        };
        let stack = [place(address), place(main + 8)];
        let stack = profile.stacks.intern(&stack);
        let value = 1 + i64::try_from(address % 97).unwrap();
        series.samples.push(Sample::new(stack, value));
        *named.entry(format!("main;{functions}")).or_default() += value;
    }
    profile.series.push(series);
    let mut bytes = Vec::new();
    candela_formats::write_pprof(&profile, &mut bytes, &PprofOptions::default()).unwrap();
    assert!(named.len() > 1, "inlined calls: {named:?}");
    (bytes, named)
}

/// The functions at each of these addresses by addr2line, outermost first.
fn functions_at(built: &Built, addresses: Range<u64>) -> Vec<String> {
    let texts: Vec<String> = addresses.map(|address| format!("{address:#x}")).collect();
    let mut arguments = vec!["-a", "-f", "-i", "-e", "full"];
    arguments.extend(texts.iter().map(String::as_str));
    let printed = tool(built.folder.path(), "addr2line", &arguments);
    // A line with the address, then two for each function: its name and its place.
    let mut all: Vec<Vec<&str>> = Vec::new();
    let mut is_name = true;
    for line in printed.lines() {
        if line.starts_with("0x") {
            all.push(Vec::new());
            is_name = true;
            continue;
        }
        if is_name {
            all.last_mut().unwrap().insert(0, line);
        }
        is_name = !is_name;
    }
    assert_eq!(all.len(), texts.len(), "{printed}");
    all.iter().map(|functions| functions.join(";")).collect()
}

/// A server that makes blocks every second.
fn start(data_dir: &Path, debuginfod: &str) -> Running {
    start_as("server", data_dir, debuginfod, &[])
}

fn start_as(command: &str, data_dir: &Path, debuginfod: &str, more: &[&str]) -> Running {
    let config = data_dir.with_extension("yaml");
    let text =
        format!("store:\n  flush_interval: 1s\nsymbols:\n  debuginfod_urls: [{debuginfod}]\n");
    std::fs::write(&config, text).unwrap();
    let arguments = [
        command,
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        data_dir.to_str().unwrap(),
        "--config",
        config.to_str().unwrap(),
    ];
    let arguments = [&arguments, more].concat();
    Running::try_start(&arguments, &[("CANDELA_AGENT__INTERVAL", "2s")])
        .unwrap_or_else(|messages| panic!("candela {arguments:?} ended: {messages}"))
}

fn send(candela: &Running, body: &[u8]) {
    let url = candela.url("/api/v1/ingest?service=shop");
    let (status, answer) = support::try_post(&url, body).unwrap();
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&answer));
}

/// The value of each stack by names, without the prefix of a service.
fn folded(candela: &Running) -> BTreeMap<String, i64> {
    let path = format!("/api/v1/flamegraph?format=folded&{SERVICE}");
    let (status, body) = support::get(&candela.url(&path));
    let text = String::from_utf8(body).unwrap();
    assert_eq!(status, 200, "{text}");
    let mut sums = BTreeMap::new();
    for line in text.lines() {
        let (names, value) = line.rsplit_once(' ').unwrap();
        *sums.entry(names.to_owned()).or_default() += value.parse::<i64>().unwrap();
    }
    sums
}

fn symbols(candela: &Running, arguments: &[&str]) -> Output {
    let server = candela.url("");
    let all = [&["symbols"], arguments, &["--server", &server]].concat();
    support::run(&all)
}

fn wanted(candela: &Running, build_id: &str) -> Option<Value> {
    let answer = support::get_json(&candela.url(&format!("/api/v1/symbols/{build_id}")));
    Some(answer["wanted"].clone()).filter(|wanted| !wanted.is_null())
}

#[test]
fn uploaded_symbols_name_what_was_stored_before() {
    let Some(built) = build("uploaded_symbols_name_what_was_stored_before") else {
        return;
    };
    let data_dir = built.path("data");
    let candela = start(&data_dir, "");
    let (body, named) = profile(&built);
    send(&candela, &body);
    let missing = support::eventually("the block wants names", || {
        wanted(&candela, &built.build_id)
    });
    assert_eq!(missing["mapping"], "/srv/shop", "{missing}");
    let before = folded(&candela);
    assert!(
        before.keys().all(|names| names.contains("shop+0x")),
        "{before:?}"
    );
    let listed = symbols(&candela, &["list", "--wanted"]);
    assert!(support::stdout(&listed).contains(&built.build_id));

    let refused = symbols(
        &candela,
        &["upload", &built.text("stripped"), &built.text("shop.c")],
    );
    assert_eq!(refused.status.code(), Some(1));
    let messages = support::stderr(&refused);
    assert!(
        messages.contains("is stripped, and this machine has no debug file"),
        "{messages}"
    );
    assert!(
        messages.contains("is not a readable ELF file"),
        "{messages}"
    );
    let uploaded = symbols(&candela, &["upload", "--json", &built.text("full.debug")]);
    let answer: Value = serde_json::from_slice(&uploaded.stdout).unwrap();
    assert_eq!(answer["schema"], "candela/symbols-upload/v1");
    assert_eq!(answer["files"][0]["status"], "uploaded", "{answer}");
    assert_eq!(answer["files"][0]["build_id"], *built.build_id);
    let again = symbols(&candela, &["upload", &built.text("full.debug")]);
    assert!(
        support::stderr(&again).starts_with("present "),
        "{}",
        support::stderr(&again)
    );

    support::eventually("the old profile has names", || {
        wanted(&candela, &built.build_id).is_none().then_some(())
    });
    assert_eq!(
        folded(&candela),
        named,
        "the names of addr2line, and equal values"
    );
    let top = support::get_json(&candela.url(&format!("/api/v1/top?{SERVICE}&sort=total")));
    let functions = top["functions"].as_array().unwrap();
    let innermost = functions
        .iter()
        .find(|row| row["name"] == "innermost")
        .unwrap();
    assert!(
        innermost["file"].as_str().unwrap().ends_with("shop.c"),
        "{innermost}"
    );
    assert_eq!(innermost["mapping"], "/srv/shop");
    // The block answers before its pass is counted.
    let symbolization = support::eventually("the pass is counted", || {
        let status = support::get_json(&candela.url("/api/v1/status"));
        let symbolization = status["symbolization"].clone();
        (symbolization["named_locations"].as_u64()? > 1).then_some(symbolization)
    });
    assert_eq!(symbolization["last_error"], Value::Null, "{symbolization}");

    assert_eq!(candela.terminate(), Some(0));
    let candela = start(&data_dir, "");
    assert_eq!(folded(&candela), named, "after a restart");
    let listed = symbols(&candela, &["list", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed["files"][0]["name"], "full.debug", "{listed}");
    assert_eq!(listed["wanted"], serde_json::json!([]), "{listed}");
    // What comes later finds the file that is there.
    let (second, _) = profile(&built);
    send(&candela, &second);
    support::eventually("the new profile has names", || {
        let sums = folded(&candela);
        let is_named = sums.keys().all(|names| !names.contains("shop+0x"));
        let total: i64 = sums.values().sum();
        (is_named && total > named.values().sum()).then_some(())
    });
}

#[test]
fn debuginfod_names_what_nobody_uploads() {
    let Some(built) = build("debuginfod_names_what_nobody_uploads") else {
        return;
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let debug_file = std::fs::read(built.path("full.debug")).unwrap();
    let path = format!("GET /buildid/{}/debuginfo ", built.build_id);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap_or(0);
            let is_wanted = request[..length].starts_with(path.as_bytes());
            let (status, body) = match is_wanted {
                true => ("200 OK", &debug_file[..]),
                false => ("404 Not Found", &[][..]),
            };
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            // A client that goes away ends its own test.
            let _ = stream.write_all(head.as_bytes());
            let _ = stream.write_all(body);
        }
    });
    let candela = start(&built.path("data"), &url);
    let (body, named) = profile(&built);
    send(&candela, &body);
    support::eventually("the names of the debuginfod server", || {
        (folded(&candela) == named).then_some(())
    });
}

#[test]
fn stacks_of_the_agent_get_names_too() {
    check_stacks_of_the_agent("stacks_of_the_agent_get_names_too", 0.5);
}

/// Names what an agent has stored of a program, which then has this share of its CPU time in its own functions.
pub(crate) fn check_stacks_of_the_agent(test: &str, least_share: f64) {
    let tools = ["gcc", "objcopy", "strip"];
    if !support::is_root(test) || !tools.iter().all(|name| support::has_tool(test, name)) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = support::compile_shares(folder.path());
    let debug_file = folder.path().join("kept.debug");
    let debug_file = debug_file.to_str().unwrap();
    tool(
        folder.path(),
        "objcopy",
        &["--only-keep-debug", "shares", debug_file],
    );
    tool(folder.path(), "strip", &["shares"]);
    let data_dir = folder.path().join("data");
    let burner = Program::start(Command::new(&program).arg("100000"));
    let candela = start_as("up", &data_dir, "", &["--rate", "499"]);
    // One answer for all: the names come while questions are asked.
    let top = || {
        let query = "query=%7Bservice_name%3D%22shares%22%7D&from=now-10m";
        let top = support::get_json(&candela.url(&format!("/api/v1/top?{query}&limit=0")));
        let mut own: BTreeMap<String, i64> = BTreeMap::new();
        for row in top["functions"].as_array().unwrap() {
            let name = row["name"].as_str().unwrap().to_owned();
            *own.entry(name).or_default() += row["self"].as_i64().unwrap();
        }
        own.retain(|_, samples| *samples > 0);
        own
    };
    let is_nameless = |name: &String| name.starts_with("shares+0x");
    support::eventually("the stripped program is there", || {
        top().keys().any(is_nameless).then_some(())
    });
    // Among few samples the dynamic linker may have most.
    support::let_run(burner.pid(), Duration::from_millis(500));
    drop(burner);
    let uploaded = symbols(&candela, &["upload", debug_file]);
    support::expect_code(&uploaded, 0);
    let named = support::eventually_ok("the names", || {
        let own = top();
        let has_names = own.keys().any(|name| name.starts_with("burn_"));
        match has_names && !own.keys().any(is_nameless) {
            true => Ok(own),
            false => Err(format!("{own:?}")),
        }
    });
    let total: i64 = named.values().sum();
    let burning = named.iter().filter(|(name, _)| name.starts_with("burn_"));
    let own: i64 = burning.map(|(_, samples)| samples).sum();
    let share = own as f64 / total as f64;
    let what = "share of the program's three functions";
    expect_within(
        what,
        share,
        more_than(least_share),
        format_args!("{named:?}"),
    );
}

#[test]
fn find_lists_what_this_machine_has() {
    let Some(built) = build("find_lists_what_this_machine_has") else {
        return;
    };
    let link = ["--add-gnu-debuglink=full.debug", "stripped"];
    tool(built.folder.path(), "objcopy", &link);
    let data_dir = built.path("nothing");
    let find = |what: &str| {
        support::candela()
            .args(["symbols", "find", "--json", what])
            .env("CANDELA_DATA_DIR", &data_dir)
            .output()
            .unwrap()
    };
    let found = find(&built.text("stripped"));
    assert_eq!(found.status.code(), Some(0), "{}", support::stderr(&found));
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(found["build_id"], *built.build_id);
    let files = found["files"].as_array().unwrap();
    let places: Vec<&str> = files
        .iter()
        .map(|file| file["place"].as_str().unwrap())
        .collect();
    assert_eq!(places, ["file", "debug file"], "{found}");
    assert_eq!(files[0]["contents"], serde_json::json!([]));
    assert_eq!(files[1]["path"], *built.text("full.debug"));
    // A stripped file is sent as its debug file.
    let stripped = built.text("stripped");
    let upload = support::run(&["symbols", "upload", &stripped, "--server", support::NOBODY]);
    support::expect_code(&upload, 7);

    let nowhere = find(&built.build_id);
    support::expect_code(&nowhere, 5);
    let wrong = find("no build id");
    assert_eq!(wrong.status.code(), Some(2), "{}", support::stderr(&wrong));
}
