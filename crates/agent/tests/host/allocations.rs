//! Allocations of native programs: counted, weighed, and followed to their end.

use std::path::Path;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;

use crate::memory;
use crate::memory::Memory;
use crate::memory::Service;
use crate::support;
use candela_agent::ALLOCATION_LIBRARY;
use candela_agent::AgentError;
use candela_agent::DropReason;
use candela_agent::Kind;
use candela_agent::RecordOptions;
use candela_agent::RecordTargets;
use candela_agent::Recording;
use candela_agent::UnseenAllocations;

/// Where Debian has them.
const LIBRARIES: &str = "/usr/lib/x86_64-linux-gnu";

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
    check_every_allocation(None);
}

#[test]
fn the_same_holds_with_another_allocator_loaded() {
    let mut are_there = 0;
    for name in [
        "libjemalloc.so.2",
        "libtcmalloc_minimal.so.4",
        "libmimalloc.so.2",
    ] {
        let library = Path::new(LIBRARIES).join(name);
        if library.try_exists().expect("the folder can be read") {
            are_there += 1;
            check_every_allocation(Some(&library));
        }
    }
    if are_there == 0 {
        eprintln!("skipped: neither jemalloc, tcmalloc nor mimalloc is installed");
    }
}

/// All of them, in a program that loads `allocator` before the C library.
fn check_every_allocation(allocator: Option<&Path>) {
    if support::cannot_sample() || support::lacks("gcc") {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (program, plugin) = memory::build(directory.path());
    let mut command = Command::new(program);
    command
        .arg("few")
        .arg(plugin)
        // All of them are samples.
        .env("CANDELA_ALLOC_INTERVAL", "0")
        .envs(allocator.map(|library| ("LD_PRELOAD", library)))
        .stdin(Stdio::null());
    let recording = candela_agent::record(options(RecordTargets::Command(command)), || {})
        .unwrap_or_else(|error| panic!("{error}"));
    assert_nothing_lost(&recording);
    assert!(recording.exit_status.is_some_and(|status| status.success()));
    memory::assert_few(&recording.profile, 1, 1);
    // One child ends with four, another one becomes a program that knows nothing of them.
    let in_child = memory::of_function(&recording.profile, "in_child");
    assert_eq!(in_child, Memory::of(10, 10 * 80, 4, 4 * 80));
}

#[test]
fn sums_of_a_service_are_right_within_the_sampling_error() {
    const INTERVAL: u32 = 16_384;
    if support::cannot_sample() || support::lacks("gcc") {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (program, _) = memory::build(directory.path());
    let library = directory.path().join("libcandela-preload.so");
    std::fs::write(&library, ALLOCATION_LIBRARY).expect("written");
    let mut command = Command::new(program);
    command
        .env("LD_PRELOAD", &library)
        .env("CANDELA_ALLOC_INTERVAL", INTERVAL.to_string())
        .env("CANDELA_ALLOC_SEED", "7");
    let mut service = Service::start(command);
    service.expect("ready\n");
    let options = options(RecordTargets::Pids(vec![service.pid()]));
    let stop = std::sync::Arc::clone(&options.stop);
    let (sender, begun) = std::sync::mpsc::channel();
    let recording = std::thread::scope(|scope| {
        let begins = move || sender.send(()).expect("the test waits");
        let recorder = scope.spawn(|| candela_agent::record(options, begins));
        // Without a begin there is an error to tell.
        if begun.recv().is_ok() {
            service.go_on();
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        recorder.join().expect("no panic")
    });
    let recording = recording.unwrap_or_else(|error| panic!("{error}"));
    assert_nothing_lost(&recording);
    memory::assert_many(&recording.profile, INTERVAL);
}

#[test]
fn what_runs_without_the_library_is_refused() {
    let sleeping = Command::new("sleep").arg("1000").spawn();
    let mut sleeping = sleeping.expect("coreutils are there");
    let options = options(RecordTargets::Pids(vec![sleeping.id()]));
    let refused = candela_agent::record(options, || panic!("nothing begins"));
    sleeping.kill().expect("it runs");
    sleeping.wait().expect("it has ended");
    let error = refused.expect_err("it does not have the library");
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
    // Debian has mimalloc as a library only.
    let mimalloc = build(
        "mimalloc",
        &quiet,
        &JEMALLOC.replace("_rjem_mallctl", "mi_malloc"),
    );
    assert_eq!(mimalloc, Some(UnseenAllocations::LinkedIn("mimalloc")));
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

/// Real allocators as programs have them: in themselves, or as a library that is loaded with them.
#[test]
fn allocators_are_recognized_where_they_are_linked_in() {
    if support::lacks("gcc") {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = directory.path().join("source.c");
    let text =
        "#include <stdlib.h>\nint main(int count, char **words) { return malloc(count) == words; }";
    std::fs::write(&source, text).expect("written");
    for (library, name) in [
        ("libjemalloc.a", Some("jemalloc")),
        ("libtcmalloc_minimal.a", Some("tcmalloc")),
        ("libmimalloc.so", None),
        ("libjemalloc.so", None),
    ] {
        let allocator = Path::new(LIBRARIES).join(library);
        if !allocator.try_exists().expect("the folder can be read") {
            eprintln!("skipped: {library} is not installed");
            continue;
        }
        let program = directory.path().join(library).with_extension("program");
        let paths = [&source, &allocator, Path::new("-o"), &program].map(Path::as_os_str);
        let flags = [
            "-O0",
            "-fno-builtin",
            "-Wl,--no-as-needed",
            "-lstdc++",
            "-lm",
        ];
        support::run(
            "gcc",
            paths.into_iter().chain(flags.iter().map(AsRef::as_ref)),
        );
        let found = UnseenAllocations::of_program(&program);
        assert_eq!(found, name.map(UnseenAllocations::LinkedIn), "{library}");
    }
}
