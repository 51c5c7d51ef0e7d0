//! `/api/v1/symbols`: this very program, sent as a symbol file, names addresses of this process.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;
use std::time::Instant;

use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Location;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_symbols::ObjectFile;
use serde_json::Value;
use serde_json::json;

use crate::support;
use crate::support::PATIENCE;
use crate::support::TestServer;

/// What is to be found by its address.
#[inline(never)]
fn a_function_of_this_test() -> u64 {
    std::hint::black_box(7)
}

fn eventually<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = attempt() {
            return value;
        }
        assert!(start.elapsed() < PATIENCE, "{what}: not in time");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// A sample in [`a_function_of_this_test`], as a profiler without symbols sends it; and the build id.
fn profile_of_this_process() -> (Profile, String) {
    let place: fn() -> u64 = a_function_of_this_test;
    assert_eq!(place(), 7);
    let address = place as usize as u64;
    let maps = std::fs::read_to_string("/proc/self/maps").expect("/proc is mounted");
    let number = |digits| u64::from_str_radix(digits, 16).expect("hexadecimal");
    let mut mappings = maps.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (start, limit) = words[0].split_once('-')?;
        let range = (number(start), number(limit));
        (range.0..range.1)
            .contains(&address)
            .then(|| (range, number(words[2])))
    });
    let ((start, limit), offset) = mappings.next().expect("the code is mapped");
    let program = std::env::current_exe().expect("/proc is mounted");
    let object = ObjectFile::open(&program).expect("an ELF file");
    let build_id = object.build_id().to_string();

    let mut profile = support::demo_profile();
    profile.series.clear();
    let symbols = &mut profile.symbols;
    let mapping = Mapping {
        memory_start: start,
        memory_limit: limit,
        file_offset: offset,
        file: symbols.strings.intern("/srv/this-test"),
        build_id: symbols.strings.intern(&build_id),
    };
    let mapping = symbols.intern_mapping(mapping);
    let place = Location::new(FrameKind::Native, address).in_mapping(mapping);
    let place = symbols.intern_location(&place, &[]);
    let stack = profile.stacks.intern(&[place]);
    let labels = Labels::from_pairs([("service_name", "checkout")]);
    let mut series = ProfileSeries::new(labels, support::cpu_type());
    series.start_ns = support::START_NS;
    series.samples.push(Sample::new(stack, 100));
    profile.series.push(series);
    (profile, build_id)
}

fn top(server: &TestServer) -> Vec<(String, i64)> {
    let top = server.json("/api/v1/top");
    let functions = top["functions"].as_array().expect("an array").iter();
    let functions = functions.map(|row| {
        let name = row["name"].as_str().expect("a name").to_owned();
        (name, row["self"].as_i64().expect("a number"))
    });
    functions.collect()
}

#[test]
fn an_uploaded_program_names_what_is_in_blocks() {
    let server = TestServer::start();
    let (profile, build_id) = profile_of_this_process();
    let body = support::pprof_bytes(&profile);
    assert_eq!(server.post("/api/v1/ingest", &body).status, 200);
    let flushed = server.runtime.block_on(server.store.flush());
    flushed.expect("a block");
    let before = top(&server);
    assert!(before[0].0.starts_with("this-test+0x"), "{before:?}");
    let known = server.json(&format!("/api/v1/symbols/{build_id}"));
    assert_eq!(known["file"], Value::Null);
    let wanted = json!({
        "build_id": build_id,
        "mapping": "/srv/this-test",
        "samples": 1,
        "addresses": 1,
        "blocks": 1,
    });
    assert_eq!(known["wanted"], wanted);
    assert_eq!(server.json("/api/v1/symbols")["wanted"], json!([wanted]));

    let program = std::env::current_exe().expect("/proc is mounted");
    let program = std::fs::read(program).expect("readable");
    let answer = server.post("/api/v1/symbols?name=this-test", &program);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let answer = answer.json();
    assert_eq!(answer["build_id"], *build_id);
    assert_eq!(answer["bytes"], program.len());
    assert_eq!(
        (&answer["name"], &answer["is_new"]),
        (&json!("this-test"), &json!(true))
    );

    let named = eventually("the block has the name", || {
        let named = top(&server);
        (!named[0].0.starts_with("this-test+0x")).then_some(named)
    });
    // Optimized, its only instruction is that of a function inlined into it.
    let mut names = named.iter().map(|(name, _)| name);
    assert!(
        names.any(|name| name.ends_with("a_function_of_this_test")),
        "{named:?}"
    );
    assert_eq!(named.iter().map(|(_, value)| value).sum::<i64>(), 100);
    let listed = server.json("/api/v1/symbols");
    assert_eq!(listed["wanted"], json!([]));
    assert_eq!(listed["files"][0]["build_id"], *build_id);
    // The block answers before its pass is counted.
    let status = eventually("the pass is counted", || {
        let status = server.json("/api/v1/status")["symbolization"].take();
        (status["named_locations"] == 1).then_some(status)
    });
    assert_eq!(status["last_error"], Value::Null);
}

#[test]
fn a_file_that_breaks_off_leaves_nothing() {
    let server = TestServer::start();
    let mut stream = TcpStream::connect(server.address).expect("the server listens");
    let head = format!(
        "POST /api/v1/symbols HTTP/1.1\r\nHost: {}\r\nContent-Length: 1000000\r\n\r\n",
        server.address
    );
    stream.write_all(head.as_bytes()).expect("sent");
    stream.write_all(&[0x7f; 5000]).expect("sent");
    let folder = server.data_dir.path().join("symbols/incoming");
    let count = || std::fs::read_dir(&folder).expect("a folder").count();
    eventually("the file is being received", || {
        (count() == 1).then_some(())
    });
    drop(stream);
    eventually("the rest is gone", || (count() == 0).then_some(()));
    assert_eq!(server.json("/api/v1/symbols")["files"], json!([]));
}
