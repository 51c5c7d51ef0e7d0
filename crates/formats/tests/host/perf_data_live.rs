//! Recordings that perf makes now, against what perf itself reads in them.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on should stop, and says what it skips"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use candela_formats::Format;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::read;
use candela_model::FrameKind;
use candela_model::LabelValue;
use candela_model::Profile;
use candela_model::Sample;
use tempfile::TempDir;

use crate::binaries;

/// Two threads and a child, in functions that are no tail calls.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
volatile unsigned long sink;
__attribute__((noinline)) void leaf(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i * i; }
__attribute__((noinline)) void middle(int depth) { if (depth > 0) middle(depth - 1); else leaf(20000000); sink++; }
__attribute__((noinline)) void outer(int depth) { middle(depth); sink++; }
static void *work(void *unused) { for (int i = 0; i < 20; i++) outer(i % 5); sink++; return unused; }
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, work, 0);
  pthread_setname_np(thread, "worker bee");
  for (int i = 0; i < 20; i++) outer(3);
  pthread_join(thread, 0);
  if (fork() == 0) { for (int i = 0; i < 10; i++) outer(1); _exit(0); }
  wait(0);
  return 0;
}
"#;

/// A sample as perf prints it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    /// Microseconds, as perf prints.
    time_us: i64,
    comm: String,
    pid: i64,
    tid: i64,
    period: i64,
    /// Addresses and names, leaf first.
    frames: Vec<(u64, String)>,
}

/// `None` with a printed reason where there is no perf, or it may not record.
fn program() -> Option<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("busy.c");
    let program = folder.path().join("busy");
    std::fs::write(&source, PROGRAM).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-g", "-fno-omit-frame-pointer", "-pthread", "-o"]);
    let is_built = compiler.arg(&program).arg(&source).status();
    if !is_built.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no C compiler");
        return None;
    }
    let probe = folder.path().join("probe.data");
    let recorded = record(&probe, &["-e", "cpu-clock:u"], Path::new("true"));
    if !recorded {
        eprintln!("skipped: perf is not installed, or may not record");
        return None;
    }
    Some((folder, program))
}

fn record(data: &Path, arguments: &[&str], program: &Path) -> bool {
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-o"]).arg(data).args(arguments);
    let output = perf.arg("--").arg(program).output();
    output.is_ok_and(|output| output.status.success())
}

/// What goes through a pipe.
fn record_into_pipe(data: &Path, arguments: &[&str], program: &Path) {
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-o", "-"]).args(arguments);
    let output = perf.arg("--").arg(program).output().unwrap();
    assert!(output.status.success());
    std::fs::write(data, output.stdout).unwrap();
}

/// All samples by perf's own reading.
fn script(data: &Path) -> Vec<Line> {
    let mut perf = Command::new("perf");
    perf.args(["script", "--ns", "--full-source-path", "-F"]);
    perf.arg("comm,pid,tid,time,period,event,ip,sym,dso")
        .arg("-i");
    let output = perf.arg(data).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines: Vec<Line> = Vec::new();
    for line in text.lines() {
        if line.is_empty() {
            continue;
        }
        if line.starts_with('\t') || line.starts_with("  ") && !line.contains("cpu-clock") {
            lines.last_mut().unwrap().frames.push(frame(line));
            continue;
        }
        // "worker bee  12/13  2546.651323456:     250000 cpu-clock:u: "
        let (front, rest) = line.split_once(": ").unwrap();
        let (front, time) = front.rsplit_once(' ').unwrap();
        let (comm, ids) = front.trim().rsplit_once(' ').unwrap();
        let (pid, tid) = ids.split_once('/').unwrap();
        let (period, rest) = rest.trim().split_once(' ').unwrap();
        let (_event, place) = rest.split_once(": ").unwrap_or((rest, ""));
        let (seconds, fraction) = time.split_once('.').unwrap();
        let nanoseconds: i64 = fraction.parse().unwrap();
        lines.push(Line {
            time_us: seconds.parse::<i64>().unwrap() * 1_000_000 + nanoseconds / 1000,
            comm: comm.trim().to_owned(),
            pid: pid.trim().parse().unwrap(),
            tid: tid.trim().parse().unwrap(),
            period: period.parse().unwrap(),
            // Without call chains the one frame stands here.
            frames: (!place.trim().is_empty())
                .then(|| frame(place))
                .into_iter()
                .collect(),
        });
    }
    lines
}

/// `ffffffff81611bee do_mmap ([kernel.kallsyms])`
fn frame(text: &str) -> (u64, String) {
    let (address, rest) = text.trim().split_once(' ').unwrap();
    let name = rest.rsplit_once(" (").unwrap().0;
    (u64::from_str_radix(address, 16).unwrap(), name.to_owned())
}

/// Our reading in the same form.
fn ours(profile: &Profile) -> Vec<Line> {
    let samples = profile.series.iter().flat_map(|series| &series.samples);
    samples.map(|sample| our_line(profile, sample)).collect()
}

fn our_line(profile: &Profile, sample: &Sample) -> Line {
    let symbols = &profile.symbols;
    let labels = profile.label_sets.get(sample.label_set);
    let label = |name: &str| {
        let mut named = labels
            .iter()
            .filter(|it| symbols.strings.get(it.key) == name);
        named.next().map(|label| label.value)
    };
    let number = |name: &str| match label(name) {
        Some(LabelValue::Number { value, .. }) => value,
        other => panic!("{name}: {other:?}"),
    };
    let comm = match label("thread_name") {
        Some(LabelValue::Text(text)) => symbols.strings.get(text).to_owned(),
        other => panic!("{other:?}"),
    };
    let mut frames = Vec::new();
    for id in profile.stacks.get(sample.stack) {
        let location = symbols.location(*id);
        let lines = symbols.lines(*id);
        if lines.is_empty() {
            frames.push((location.address, "[unknown]".to_owned()));
        }
        for line in lines {
            let name = symbols.function(line.function).name;
            frames.push((location.address, symbols.strings.get(name).to_owned()));
        }
    }
    Line {
        time_us: sample.time_ns / 1000,
        comm,
        pid: number("pid"),
        tid: number("thread_id"),
        period: sample.value,
        frames,
    }
}

fn read_file(data: &Path) -> (Profile, Report) {
    let bytes = std::fs::read(data).unwrap();
    let read = read(Format::PerfData, &bytes[..], &ReadOptions::default());
    let (profile, report) = read.unwrap();
    assert_eq!(profile.validate(), Ok(()));
    (profile, report)
}

fn read_with_binaries(data: &Path) -> (Profile, Report) {
    let bytes = std::fs::read(data).unwrap();
    let options = ReadOptions::default();
    let read = binaries::read_perf_data_with_binaries(&bytes[..], &options);
    let (profile, report) = read.unwrap();
    assert_eq!(profile.validate(), Ok(()));
    (profile, report)
}

/// Everything but the frames.
fn without_frames(lines: &[Line]) -> Vec<Line> {
    let without = lines.iter().map(|line| Line {
        frames: Vec::new(),
        ..line.clone()
    });
    let mut sorted: Vec<Line> = without.collect();
    sorted.sort();
    sorted
}

/// Sums of periods by the names of the program's own functions, root first.
fn stack_sums(lines: &[Line]) -> BTreeMap<String, i64> {
    let own = ["leaf", "middle", "outer", "work", "main"];
    let mut sums = BTreeMap::new();
    for line in lines {
        let names = line.frames.iter().rev().map(|(_, name)| name.as_str());
        let names: Vec<&str> = names.filter(|name| own.contains(name)).collect();
        *sums.entry(names.join(";")).or_insert(0) += line.period;
    }
    sums
}

#[test]
fn recordings_with_frame_pointers_are_read_as_perf_reads_them() {
    let Some((folder, program)) = program() else {
        return;
    };
    let forms: [(&str, &[&str], bool); 4] = [
        (
            "plain",
            &["-F", "999", "-e", "cpu-clock", "--call-graph", "fp"],
            false,
        ),
        (
            "zstd",
            &["-z", "-F", "999", "-e", "cpu-clock", "--call-graph", "fp"],
            false,
        ),
        (
            "pipe",
            &["-F", "999", "-e", "cpu-clock", "--call-graph", "fp"],
            true,
        ),
        ("flat", &["-F", "999", "-e", "cpu-clock"], false),
    ];
    for (name, arguments, is_pipe) in forms {
        let data = folder.path().join(name);
        if is_pipe {
            record_into_pipe(&data, arguments, &program);
        } else {
            assert!(record(&data, arguments, &program), "{name}");
        }
        let expected = script(&data);
        assert!(expected.len() > 50, "{name}: {}", expected.len());
        let (profile, report) = read_file(&data);
        let found = ours(&profile);
        assert_eq!(without_frames(&found), without_frames(&expected), "{name}");
        let id = profile.series[0].profile_type.to_string();
        assert_eq!(id, "process_cpu:cpu:nanoseconds:cpu:nanoseconds");
        println!("{name}: {} samples, {report:?}", found.len());

        let (named, report) = read_with_binaries(&data);
        println!("{name}: {report:?}");
        let named = ours(&named);
        assert_eq!(stack_sums(&named), stack_sums(&expected), "{name}");
        let leaves = |lines: &[Line]| {
            let mut sums: BTreeMap<String, i64> = BTreeMap::new();
            for line in lines {
                let leaf = line.frames.first().map_or("", |(_, name)| name.as_str());
                *sums.entry(leaf.to_owned()).or_default() += line.period;
            }
            sums
        };
        let (found, expected) = (leaves(&named), leaves(&expected));
        assert_eq!(found.get("leaf"), expected.get("leaf"), "{name}");
        println!("{name}: {found:?} {expected:?}");
    }
}

#[test]
fn copied_stacks_are_walked_as_perf_walks_them() {
    let Some((folder, program)) = program() else {
        return;
    };
    let data = folder.path().join("dwarf");
    let arguments = ["-F", "499", "-e", "cpu-clock", "--call-graph", "dwarf"];
    assert!(record(&data, &arguments, &program));
    let expected = script(&data);
    assert!(expected.len() > 50, "{}", expected.len());

    let (profile, report) = read_file(&data);
    assert_eq!(without_frames(&ours(&profile)), without_frames(&expected));
    assert!(report.count("stacks_not_walked") > 0);
    assert!(
        profile
            .symbols
            .locations()
            .iter()
            .any(|it| it.kind == FrameKind::Native)
    );

    let (named, report) = read_with_binaries(&data);
    println!("{} samples, {report:?}", named.sample_count());
    assert_eq!(report.count("stacks_not_walked"), 0);
    let named = ours(&named);
    let found = stack_sums(&named);
    let expected = stack_sums(&expected);
    let total: i64 = expected.values().sum();
    let mut different = 0;
    assert!(
        found.contains_key("work;outer;middle;middle;leaf"),
        "{found:?}"
    );
    for (stack, value) in &expected {
        different += (value - found.get(stack).copied().unwrap_or(0)).abs();
    }
    println!("{found:?}\n{expected:?}");
    // A few instructions at the edges of functions are read in another way.
    assert!(different * 50 <= total, "{different} of {total} ns differ");
}
