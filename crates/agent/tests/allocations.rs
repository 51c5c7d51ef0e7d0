//! Allocations of native programs: counted, weighed, and followed to their end.

mod support;

use std::io::BufRead;
use std::io::BufReader;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;

use candela_agent::ALLOCATION_LIBRARY;
use candela_agent::AgentError;
use candela_agent::DropReason;
use candela_agent::Kind;
use candela_agent::RecordOptions;
use candela_agent::RecordTargets;
use candela_agent::Recording;
use candela_agent::UnseenAllocations;
use candela_model::Profile;

/// What a function has allocated, and what of it is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Memory {
    objects: i64,
    bytes: i64,
    objects_in_use: i64,
    bytes_in_use: i64,
}

/// What is allocated by stacks that begin in `function`: nothing of the library or of `malloc` is left of them.
fn memory_of(profile: &Profile, function: &str) -> Memory {
    let sum = |sample_type: &str, unit: &str| {
        let id = format!("memory:{sample_type}:{unit}:space:bytes");
        let series = profile.series.iter();
        let of_type = series.filter(|series| series.profile_type.to_string() == id);
        let samples = of_type.flat_map(|series| &series.samples);
        let of_function = samples.filter(|sample| {
            let leaf = profile.stacks.get(sample.stack).first();
            let mut names = leaf
                .into_iter()
                .flat_map(|&it| support::names_of(profile, it));
            names.any(|name| name == function)
        });
        of_function.map(|sample| sample.value).sum()
    };
    Memory {
        objects: sum("alloc_objects", "count"),
        bytes: sum("alloc_space", "bytes"),
        objects_in_use: sum("inuse_objects", "count"),
        bytes_in_use: sum("inuse_space", "bytes"),
    }
}

fn build(directory: &Path) -> (PathBuf, PathBuf) {
    let (program, plugin) = (directory.join("allocate"), directory.join("plugin.so"));
    let flags = ["-O2", "-g", "-fomit-frame-pointer", "-pthread"];
    let compile = |source: &str, more: &[&str], output: &Path| {
        let mut arguments: Vec<PathBuf> = flags.iter().chain(more).map(PathBuf::from).collect();
        arguments.extend([
            "-o".into(),
            output.to_owned(),
            support::source(source),
            "-ldl".into(),
        ]);
        support::run("gcc", arguments);
    };
    compile("allocate.c", &[], &program);
    compile("allocating_plugin.c", &["-shared", "-fPIC"], &plugin);
    (program, plugin)
}

fn options(targets: RecordTargets) -> RecordOptions {
    RecordOptions {
        kinds: [Kind::Alloc].into(),
        duration: Some(Duration::from_secs(60)),
        ..RecordOptions::new(targets)
    }
}

#[track_caller]
fn assert_nothing_lost(recording: &Recording) {
    let report = &recording.report;
    assert_eq!(report.lost_samples(), 0, "{report:?}");
    for reason in [DropReason::FreesLost, DropReason::AllocationNotFollowed] {
        assert_eq!(report.count(reason), 0, "{report:?}");
    }
}

#[test]
fn every_allocation_of_threads_forks_and_loaded_libraries_is_where_it_was_made() {
    if support::cannot_sample() || support::lacks("gcc") {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (program, plugin) = build(directory.path());
    let mut command = Command::new(program);
    command
        .arg("few")
        .arg(plugin)
        // All of them are samples.
        .env("CANDELA_ALLOC_INTERVAL", "0")
        .stdin(Stdio::null());
    let recording = candela_agent::record(options(RecordTargets::Command(command)), || {})
        .unwrap_or_else(|error| panic!("{error}"));
    assert_nothing_lost(&recording);
    assert!(recording.exit_status.is_some_and(|status| status.success()));
    let of = |function| memory_of(&recording.profile, function);
    let memory = |objects, bytes, objects_in_use, bytes_in_use| Memory {
        objects,
        bytes,
        objects_in_use,
        bytes_in_use,
    };
    // The forked process frees its copies of ten of them.
    assert_eq!(of("small"), memory(20, 20 * 48, 19, 19 * 48));
    assert_eq!(of("grow"), memory(10, 55_000, 1, 10_000));
    assert_eq!(
        of("align"),
        memory(4, 4096 + 640 + 6400 + 64_000, 3, 4096 + 6400 + 64_000)
    );
    assert_eq!(of("threaded"), memory(40, 40 * 70, 36, 36 * 70));
    assert_eq!(of("plug"), memory(6, 6 * 90, 5, 5 * 90));
    // One child ends with four, another one becomes a program that knows nothing of them.
    assert_eq!(of("in_child"), memory(10, 10 * 80, 4, 4 * 80));
}

/// What the sampling error of a sum may be: four standard errors, of objects of one size.
fn assert_near(estimated: i64, objects: i64, size: i64, interval: f64, unit: i64) {
    let chance = 1.0 - (-(size as f64) / interval).exp();
    let samples = objects as f64 * chance;
    let standard_error = ((1.0 - chance) / samples).sqrt();
    let truth = (objects * unit) as f64;
    let off_by = (estimated as f64 - truth) / truth;
    assert!(
        off_by.abs() < 4.0 * standard_error,
        "{estimated} instead of {truth}: off by {off_by:.4}, of {samples:.0} samples of {size} bytes"
    );
}

#[test]
fn sums_of_a_service_are_right_within_the_sampling_error() {
    const INTERVAL: u32 = 16_384;
    if support::cannot_sample() || support::lacks("gcc") {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (program, _) = build(directory.path());
    let library = directory.path().join("libcandela-preload.so");
    std::fs::write(&library, ALLOCATION_LIBRARY).expect("written");
    let mut child = Command::new(program)
        .env("LD_PRELOAD", &library)
        .env("CANDELA_ALLOC_INTERVAL", INTERVAL.to_string())
        .env("CANDELA_ALLOC_SEED", "7")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it was just built");
    // A program that has just been started may not be itself yet.
    let maps = format!("/proc/{}/maps", child.id());
    let has_library =
        || std::fs::read_to_string(&maps).is_ok_and(|it| it.contains("candela-preload"));
    while !has_library() {
        let status = child.try_wait().expect("it is our child");
        assert!(status.is_none(), "it ended: {status:?}");
        std::thread::yield_now();
    }
    let mut stdin = child.stdin.take().expect("piped");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    let options = options(RecordTargets::Pids(vec![child.id()]));
    let stop = std::sync::Arc::clone(&options.stop);
    let recording = std::thread::scope(|scope| {
        let recorder = scope
            .spawn(|| candela_agent::record(options, || stdin.write_all(b"\n").expect("it reads")));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("text");
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(line, "done\n");
        recorder.join().expect("no panic")
    });
    child.kill().expect("it waits for another line");
    child.wait().expect("it is our child");
    let recording = recording.unwrap_or_else(|error| panic!("{error}"));
    assert_nothing_lost(&recording);
    let functions = [
        ("small", 48, 150_000, 37_500),
        ("medium", 1000, 20_000, 10_000),
        ("large", 30_000, 3000, 0),
    ];
    for (function, size, objects, in_use) in functions {
        let memory = memory_of(&recording.profile, function);
        let interval = f64::from(INTERVAL);
        assert_near(memory.objects, objects, size, interval, 1);
        assert_near(memory.bytes, objects, size, interval, size);
        if in_use == 0 {
            assert_eq!((memory.objects_in_use, memory.bytes_in_use), (0, 0));
            continue;
        }
        assert_near(memory.objects_in_use, in_use, size, interval, 1);
        assert_near(memory.bytes_in_use, in_use, size, interval, size);
    }
}

#[test]
fn what_runs_without_the_library_is_refused() {
    let options = options(RecordTargets::Pids(vec![std::process::id()]));
    let refused = candela_agent::record(options, || panic!("nothing begins"));
    let error = refused.expect_err("this test does not have it");
    assert!(matches!(error, AgentError::NotPreloaded), "{error}");
    assert!(error.to_string().contains("-e alloc -- CMD"), "{error}");
}

#[test]
fn programs_without_a_malloc_to_see_are_told() {
    if support::lacks("gcc") {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let build = |name: &str, flags: &[&str], source: &str| {
        let (file, program) = (
            directory.path().join("source.c"),
            directory.path().join(name),
        );
        std::fs::write(&file, source).expect("written");
        let paths = [&file, Path::new("-o"), &program].map(Path::as_os_str);
        support::run("gcc", flags.iter().map(AsRef::as_ref).chain(paths));
        UnseenAllocations::of_program(&program)
    };
    const PLAIN: &str = "int main(void) { return 0; }";
    const OWN: &str = "void *malloc(unsigned long size) { return 0; } int main(void) { return 0; }";
    const JEMALLOC: &str = "int _rjem_mallctl(void) { return 0; } int main(void) { return 0; }";
    let quiet = ["-w", "-fno-builtin"];
    assert_eq!(build("plain", &quiet, PLAIN), None);
    let linked_static = build("static", &["-w", "-static"], PLAIN);
    assert_eq!(linked_static, Some(UnseenAllocations::Static));
    let own = build("own", &quiet, OWN);
    assert!(
        matches!(own, Some(UnseenAllocations::LinkedIn(_))),
        "{own:?}"
    );
    let jemalloc = build("jemalloc", &quiet, JEMALLOC);
    assert_eq!(jemalloc, Some(UnseenAllocations::LinkedIn("jemalloc")));
    let stripped = build(
        "stripped",
        &["-w", "-s"],
        "#include <stdio.h>\nint main(void) { return puts(\"<jemalloc>: out of memory\"); }",
    );
    assert_eq!(stripped, Some(UnseenAllocations::LinkedIn("jemalloc")));
    let script = directory.path().join("script");
    std::fs::write(&script, "#!/bin/sh\n").expect("written");
    assert_eq!(UnseenAllocations::of_program(&script), None);
}
