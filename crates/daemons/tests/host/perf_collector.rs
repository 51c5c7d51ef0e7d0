//! Dumps of what really runs, from the kernel to the text.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::channel;

use crate::support;
use crate::support::inferno::collapse_perf;
use crate::support::samples::Row;
use crate::support::samples::build;
use crate::support::samples::cannot_sample;
use crate::support::samples::check_innermost;
use crate::support::samples::row_of;
use crate::support::samples::rows_of;
use crate::support::samples::text_of;
use crate::support::wait_until;
use candela_agent::AgentOptions;
use candela_daemons::Daemon;
use candela_daemons::DaemonContext;
use candela_daemons::DumpDaemon;
use candela_daemons::Notes;
use candela_daemons::Outbox;
use candela_daemons::OutboxLimits;
use candela_daemons::Stop;
use candela_daemons::SystemClock;
use candela_fleet::DaemonBody;
use candela_fleet::FleetDocument;
use candela_formats::ReadOptions;
use candela_testing::expect_within;
use candela_testing::more_than;

/// The dumps that a `perf_collector` with these fields has left once there are so many.
pub(crate) fn dumps(fields: &str, count: u64) -> Vec<Vec<u8>> {
    let text = format!(
        r#"{{"observability_daemons": [{{"perf_collector": {{"export_to": "s3://bucket", {fields}}}}}]}}"#
    );
    let document = FleetDocument::read(&text).expect("a document").document;
    let element = &document.daemons()[0];
    let DaemonBody::PerfCollector(collector) = &element.body else {
        panic!("no perf_collector");
    };
    let base = AgentOptions::default();
    let daemon = DumpDaemon::new("node-1", collector, &base).expect("a daemon");
    let folder = tempfile::tempdir().expect("a folder");
    let outbox = Outbox::open(folder.path(), OutboxLimits::default()).expect("an outbox");
    let stop = Stop::default();
    let (_requests, receiver) = channel();
    let (started, is_started) = channel();
    let context = DaemonContext {
        outbox: Arc::clone(&outbox),
        clock: Arc::new(SystemClock::default()),
        stop: stop.clone(),
        notes: Notes::default(),
        started: Box::new(move || started.send(()).expect("the test waits")),
        notice: Box::new(|_| {}),
        requests: receiver,
    };
    let thread = std::thread::spawn(move || Box::new(daemon).run(context));
    is_started
        .recv_timeout(support::PATIENCE)
        .expect("it starts");
    wait_until("dumps", || {
        assert!(!thread.is_finished(), "it goes on until it is stopped");
        outbox.counts().waiting >= count
    });
    stop.set();
    thread.join().expect("no panic").expect("it ends well");
    assert_eq!(outbox.counts().all_dropped(), 0);
    assert!(
        outbox.counts().waiting > count,
        "the last one is there, too"
    );
    let mut dumps = Vec::new();
    while let Some(waiting) = outbox.oldest_waiting().expect("it can be read") {
        assert!(
            waiting.name().ends_with("-perf-data.gz"),
            "{}",
            waiting.name()
        );
        dumps.push(waiting.bytes.to_vec());
        outbox.uploaded(waiting);
    }
    dumps
}

#[test]
fn dumps_follow_each_other_and_have_what_was_asked_for() {
    if cannot_sample() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let Some(programs) = build(folder.path(), &["wanted", "other"]) else {
        return;
    };
    let fields = r#""perf_polling_frequency_hz": 199, "dump_duration_seconds": 1, "process_filter": {"comm": ["wan*"]}"#;
    let dumps = dumps(fields, 3);
    let texts: Vec<String> = dumps.iter().map(|dump| text_of(dump)).collect();
    for text in &texts {
        assert!(
            text.starts_with("# ========\n# captured on    : 20"),
            "{text:.200}"
        );
        assert!(text.contains("# sampled at 199 Hz, with call graphs, chosen processes\n"));
    }
    // perf's own form, with CPU, time and value.
    let mut lines = texts.iter().flat_map(|text| text.lines());
    let header = lines.find(|line| line.starts_with("wanted "));
    let header = header
        .expect("a sample")
        .split_whitespace()
        .collect::<Vec<_>>();
    assert!(header[1].contains('/'), "process and thread: {header:?}");
    assert!(
        header[2].starts_with('[') && header[2].ends_with(']'),
        "{header:?}"
    );
    assert_eq!(header[5], "cpu-clock:", "{header:?}");

    let rows: Vec<Vec<Row>> = texts.iter().map(|text| rows_of(text)).collect();
    let all: Vec<&Row> = rows.iter().flatten().collect();
    assert!(!all.is_empty(), "samples in {} dumps", rows.len());
    for row in &all {
        assert_eq!(row.thread_name, "wanted");
    }
    assert!(all.iter().any(|row| is_whole(row)), "no whole stack");

    // No sample is in two dumps.
    for pair in rows.windows(2) {
        let (Some(last), Some(first)) = (pair[0].last(), pair[1].first()) else {
            continue;
        };
        assert!(first.time_ns > last.time_ns, "dumps overlap");
    }
    drop(programs);
}

/// Whether a sample has the stack of the program.
pub(crate) fn is_whole(row: &Row) -> bool {
    let has = |name: &str| row.functions.iter().any(|function| function == name);
    has("known_work") && has("known_caller") && has("main")
}

/// The value of each stack, outermost first below the name of its thread, as other programs fold.
fn folded(text: &str) -> BTreeMap<String, i64> {
    let read = candela_formats::read_perf_script(text.as_bytes(), &ReadOptions::default());
    let (profile, _) = read.expect("the text of perf script");
    let symbols = &profile.symbols;
    let mut sums = BTreeMap::new();
    for sample in profile.series.iter().flat_map(|series| &series.samples) {
        let row = row_of(&profile, sample);
        let mut stack = vec![row.thread_name];
        for &location in profile.stacks.get(sample.stack).iter().rev() {
            let file = symbols.mapping(symbols.location(location).mapping).file;
            let file = symbols.strings.get(file);
            let lines = symbols.lines(location).iter().rev();
            let names = lines.map(|line| symbols.function(line.function).name);
            let names: Vec<&str> = names.map(|name| symbols.strings.get(name)).collect();
            match (names.is_empty(), file.rsplit('/').next()) {
                (false, _) => stack.extend(names.into_iter().map(str::to_owned)),
                (true, None | Some("")) => stack.push("[unknown]".to_owned()),
                (true, Some(file)) => stack.push(format!("[{file}]")),
            }
        }
        *sums.entry(stack.join(";")).or_default() += sample.value;
    }
    sums
}

#[test]
fn inferno_folds_a_dump_as_we_do() {
    check_inferno(1, 0);
}

/// Has inferno fold a dump of so many seconds, which has more CPU time than `least_ns`.
pub(crate) fn check_inferno(seconds: u32, least_ns: i64) {
    if cannot_sample() {
        return;
    }
    let Some(inferno) = collapse_perf() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let Some(programs) = build(folder.path(), &["folding"]) else {
        return;
    };
    let fields = format!(
        r#""perf_polling_frequency_hz": 199, "dump_duration_seconds": {seconds}, "process_filter": {{"comm": ["folding"]}}"#
    );
    let dumps = dumps(&fields, 2);
    drop(programs);
    let text = text_of(&dumps[1]);
    let file = folder.path().join("dump.txt");
    std::fs::write(&file, &text).expect("written");
    let output = Command::new(inferno).arg(&file).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let theirs = String::from_utf8(output.stdout).expect("text");
    let theirs = theirs.lines().map(|line| {
        let (stack, value) = line.rsplit_once(' ').expect("a value");
        (stack.to_owned(), value.parse().expect("a number"))
    });
    let theirs: BTreeMap<String, i64> = theirs.collect();
    assert!(
        theirs
            .keys()
            .any(|stack| stack.contains("known_caller;known_work"))
    );
    let sum_ns = theirs.values().sum::<i64>();
    let what = format!("ns of CPU time in {seconds} s");
    expect_within(&what, sum_ns as f64, more_than(least_ns as f64), "");
    assert_eq!(folded(&text), theirs);
}

#[test]
fn without_call_graphs_there_are_the_innermost_frames() {
    check_without_call_graphs(0, 0.0);
}

/// With more samples than `least`, and more than that share of them in the function that works.
pub(crate) fn check_without_call_graphs(least: usize, share: f64) {
    if cannot_sample() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let Some(programs) = build(folder.path(), &["leafy"]) else {
        return;
    };
    let pattern = folder.path().join("leafy");
    let fields = format!(
        r#""dump_duration_seconds": 1, "call_graph": false, "process_filter": {{"cmdline": ["{}*"]}}"#,
        pattern.display()
    );
    let dumps = dumps(&fields, 2);
    let rows: Vec<Row> = dumps
        .iter()
        .flat_map(|dump| rows_of(&text_of(dump)))
        .collect();
    check_innermost(&rows, least, share);
    assert!(
        rows.iter().all(|row| row.numbers.len() >= 2),
        "process and thread"
    );
    drop(programs);
}
