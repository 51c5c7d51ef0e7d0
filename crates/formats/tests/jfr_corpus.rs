//! JFR against real recordings with the stacks that another reader found in them, and against what
//! the JDK's own tool says of a recording made on the spot.
#![expect(clippy::print_stderr, reason = "a test says what it skips")]

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::common::found_files;
use candela_formats::JfrOptions;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::read_jfr;
use candela_model::LabelValue;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;

/// Values by stack: root first, each frame as `name:line`.
type Stacks = BTreeMap<String, Vec<i64>>;

/// Recordings whose ticks are not nanoseconds, and how many are a second. The other reader gives
/// the duration of waits in ticks and calls them nanoseconds; ours are.
const TICKS_PER_SECOND: [(&str, i128); 3] = [
    ("example", 2_303_974_730),
    ("cpool-uint64-constant-index", 1_800_000_000),
    ("object-allocation-sample", 1_800_000_000),
];

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/jfr")
}

fn inflated(bytes: &[u8]) -> String {
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(bytes)
        .read_to_string(&mut text)
        .unwrap();
    text
}

fn read(bytes: &[u8], labels_snapshot: Vec<u8>) -> (Profile, Report) {
    let options = JfrOptions {
        // That of the expected files, for recordings that do not say their own.
        sample_rate_hz: Some(100),
        labels_snapshot,
        ..JfrOptions::default()
    };
    let (profile, report) = read_jfr(bytes, &options, &ReadOptions::default()).unwrap();
    assert_eq!(profile.validate(), Ok(()));
    (profile, report)
}

/// `java/lang/Thread.run:840;FastSlow.fib:4 [1 20]`, lines of one file.
fn expected_stacks(text: &str) -> Stacks {
    let mut stacks = Stacks::new();
    for line in text.lines() {
        let (stack, values) = line.strip_suffix(']').unwrap().rsplit_once(" [").unwrap();
        let frames: Vec<String> = stack.split(';').map(expected_frame).collect();
        let values: Vec<i64> = values
            .split(' ')
            .map(|value| value.parse().unwrap())
            .collect();
        add(&mut stacks, frames.join(";"), &values);
    }
    stacks
}

/// The same frame in our words: classes with dots, no dot where there is no class, no address or
/// running number in the name of a generated class, and 0 for the line -1.
fn expected_frame(frame: &str) -> String {
    let frame = frame.replace('/', ".").replace(":4294967295", ":0");
    let frame = frame.strip_prefix('.').unwrap_or(&frame);
    if let Some((class, _)) = frame.split_once("$$Lambda") {
        let (_, method) = frame.rsplit_once('.').unwrap();
        return format!("{class}$$Lambda_.{method}");
    }
    if let Some((class, method)) = frame.split_once("GeneratedConstructorAccessor") {
        let (_, method) = method.split_once('.').unwrap();
        return format!("{class}GeneratedConstructorAccessor_.{method}");
    }
    let hidden = frame.split_once("+0x").or(frame.split_once(".0x"));
    let Some((class, _)) = hidden else {
        return frame.to_owned();
    };
    let (_, method) = frame.rsplit_once('.').unwrap();
    format!("{class}_.{method}")
}

fn add(stacks: &mut Stacks, stack: String, values: &[i64]) {
    let sums = stacks.entry(stack).or_insert_with(|| vec![0; values.len()]);
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum += value;
    }
}

fn stack_of(profile: &Profile, sample: &Sample) -> String {
    let symbols = &profile.symbols;
    let frames = profile
        .stacks
        .get(sample.stack)
        .iter()
        .rev()
        .map(|&location| {
            let line = symbols.lines(location)[0];
            let name = symbols.strings.get(symbols.function(line.function).name);
            format!("{}:{}", name.replace('/', "."), line.line)
        });
    frames.collect::<Vec<_>>().join(";")
}

/// Our values of the columns of a file whose name holds `memory_objects__count_space__bytes`.
fn our_stacks(profile: &Profile, columns: &str) -> Stacks {
    let (name, pairs) = split_columns(columns);
    let mut stacks = Stacks::new();
    for (position, (sample_type, unit)) in pairs.iter().enumerate() {
        let series = profile.series.iter().find(|series| {
            let profile_type = &series.profile_type;
            profile_type.name == name
                && profile_type.sample_type == *sample_type
                && profile_type.sample_unit == *unit
        });
        let Some(series) = series else {
            continue;
        };
        for sample in &series.samples {
            let mut values = vec![0; pairs.len()];
            values[position] = at_100_hz(series, sample.value);
            add(&mut stacks, stack_of(profile, sample), &values);
        }
    }
    stacks
}

/// The other reader takes each sample for 10 ms, whatever the recording says of its distance to the next.
fn at_100_hz(series: &ProfileSeries, value: i64) -> i64 {
    match series.period {
        0 => value,
        period => value / period * 10_000_000,
    }
}

/// `process_cpu_cpu__nanoseconds` is the name `process_cpu` and the column `cpu` in `nanoseconds`.
fn split_columns(columns: &str) -> (&str, Vec<(String, String)>) {
    let name = ["process_cpu", "wall", "memory", "mutex", "block"]
        .into_iter()
        .find(|name| columns.starts_with(name))
        .unwrap_or_else(|| panic!("a new name in {columns}"));
    let mut pairs = Vec::new();
    let mut rest = columns[name.len()..].trim_start_matches('_');
    while let Some((sample_type, behind)) = rest.split_once("__") {
        let (unit, next) = behind.split_once('_').unwrap_or((behind, ""));
        pairs.push((sample_type.to_owned(), unit.to_owned()));
        rest = next;
    }
    (name, pairs)
}

/// The expected files of a recording: columns and text.
fn expectations(stem: &str, suffix: &str) -> Vec<(String, String)> {
    let folder = corpus().join(format!("{stem}.expected"));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let columns = name
            .strip_prefix(stem)
            .and_then(|rest| rest.strip_suffix(suffix));
        // `_0_process_cpu_cpu__nanoseconds`
        let Some((_, columns)) = columns.and_then(|rest| rest[1..].split_once('_')) else {
            continue;
        };
        let text = inflated(&std::fs::read(&path).unwrap());
        found.push((columns.to_owned(), text));
    }
    assert!(!found.is_empty(), "{stem} has expected files");
    found.sort();
    found.dedup();
    found
}

#[test]
fn real_recordings_have_the_stacks_that_another_reader_finds() {
    let mut compared = 0;
    for file in found_files("jfr") {
        let stem = file.name.strip_suffix(".jfr.gz").unwrap();
        let (profile, report) = read(&file.bytes, Vec::new());
        eprintln!("{stem}: {:?}", report.notes);
        for (columns, text) in expectations(stem, "_expected_collapsed.txt.gz") {
            let expected = expected_stacks(&text);
            let mut ours = our_stacks(&profile, &columns);
            // The other reader leaves out what has no stack; we keep its value.
            let without_stack = ours.remove("");
            eprintln!(
                "  {columns}: {} stacks, {without_stack:?} without",
                ours.len()
            );
            let name = format!("{stem} {columns}");
            let ticks = TICKS_PER_SECOND.iter().find(|(known, _)| *known == stem);
            match ticks {
                Some(&(_, ticks)) if columns.contains("delay") => {
                    assert_same_in_ticks(&ours, &expected, ticks, &name);
                }
                _ => assert_same(&ours, &expected, &name),
            }
            compared += 1;
        }
    }
    if compared == 0 {
        eprintln!("skipped: no recordings beside the checkout");
    }
}

fn assert_same(ours: &Stacks, expected: &Stacks, name: &str) {
    for (stack, values) in expected {
        assert_eq!(ours.get(stack), Some(values), "{name}: {stack}");
    }
    let added = ours
        .iter()
        .find(|(stack, _)| !expected.contains_key(*stack));
    assert_eq!(added, None, "{name}");
}

/// Values by labels, from the samples of a profile as text.
fn expected_labels(text: &str) -> BTreeMap<String, i64> {
    let mut sums = BTreeMap::new();
    let samples = text.lines().skip_while(|line| !line.starts_with("cpu/"));
    let samples = samples
        .skip(1)
        .take_while(|line| !line.starts_with("Locations"));
    let lines: Vec<&str> = samples.collect();
    for (position, line) in lines.iter().enumerate() {
        let value = line
            .split_once(": ")
            .map(|(value, _)| value.trim().parse::<i64>());
        let Some(Ok(value)) = value else {
            continue;
        };
        let labels = lines.get(position + 1).filter(|line| line.contains(":["));
        let labels = labels.map_or("", |line| line.trim());
        *sums.entry(labels.to_owned()).or_default() += value;
    }
    sums
}

/// The same of ours; the thread's name is a label that the other reader does not have.
fn our_labels(profile: &Profile) -> BTreeMap<String, i64> {
    let text = |id| profile.symbols.strings.get(id);
    let mut sums = BTreeMap::new();
    let all = profile.series.iter();
    let all = all.flat_map(|series| series.samples.iter().map(move |sample| (series, sample)));
    for (series, sample) in all {
        let mut labels: Vec<String> = Vec::new();
        for label in profile.label_sets.get(sample.label_set) {
            let LabelValue::Text(value) = label.value else {
                panic!("a number as a label");
            };
            if text(label.key) != "thread_name" {
                labels.push(format!("{}:[{}]", text(label.key), text(value)));
            }
        }
        let span = u64::from_be_bytes(profile.links[sample.link.index()].span_id);
        if span != 0 {
            labels.push(format!("profile_id:[{span:016x}]"));
        }
        labels.sort();
        *sums.entry(labels.join(" ")).or_default() += at_100_hz(series, sample.value);
    }
    sums
}

#[test]
fn spans_and_labels_of_the_snapshot_are_found() {
    const STEM: &str = "new_spancontext";
    let folder = corpus();
    let Ok(bytes) = std::fs::read(folder.join(format!("{STEM}.jfr.gz"))) else {
        eprintln!("skipped: no recordings beside the checkout");
        return;
    };
    let snapshot = folder.join(format!("{STEM}.expected/{STEM}.labels.gz"));
    let (profile, report) = read(&bytes, std::fs::read(snapshot).unwrap());
    assert_eq!(report.count("labels_unknown"), 0);
    let [(_, text)] = &expectations(STEM, "_expected.txt.gz")[..] else {
        panic!("one type is expected");
    };
    let expected = expected_labels(text);
    assert!(expected.len() > 1, "{expected:?}");
    assert_eq!(our_labels(&profile), expected);
}

const PROGRAM: &str = r#"
public class Hot {
    static volatile long sink;
    static final Object LOCK = new Object();
    static void burn(long until) {
        long x = 1;
        while (System.nanoTime() < until) {
            for (int i = 0; i < 100_000; i++) { x = x * 31 + i; }
        }
        sink = x;
    }
    static void allocate() {
        for (int i = 0; i < 20_000; i++) { sink += new byte[4096].length; }
    }
    public static void main(String[] arguments) throws Exception {
        Thread holder = new Thread(() -> {
            synchronized (LOCK) { burn(System.nanoTime() + 300_000_000L); }
        }, "holder");
        holder.start();
        while (!Thread.holdsLock(LOCK) && holder.getState() != Thread.State.TERMINATED) {
            burn(System.nanoTime() + 50_000_000L);
            synchronized (LOCK) { break; }
        }
        holder.join();
        burn(System.nanoTime() + 500_000_000L);
        allocate();
        System.gc();
    }
}
"#;

/// A recording of a program that burns, waits for a lock, allocates and collects.
fn record(folder: &Path) -> Option<PathBuf> {
    let source = folder.join("Hot.java");
    std::fs::write(&source, PROGRAM).unwrap();
    let recording = folder.join("hot.jfr");
    // Apart from the program: else most samples are of the compiler.
    let compiled = Command::new("javac")
        .arg("-d")
        .arg(folder)
        .arg(&source)
        .output();
    if !compiled.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no javac");
        return None;
    }
    let output = Command::new("java")
        .arg(format!(
            "-XX:StartFlightRecording:filename={},settings=profile",
            recording.display()
        ))
        .arg("-cp")
        .arg(folder)
        .arg("Hot")
        .output();
    match output {
        Ok(output) if output.status.success() => Some(recording),
        Ok(output) => {
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            eprintln!("skipped: this java records nothing: {message}");
            None
        }
        Err(error) => {
            eprintln!("skipped: no java: {error}");
            None
        }
    }
}

/// How many events of each kind the JDK's own tool counts.
fn summary(recording: &Path) -> Option<BTreeMap<String, i64>> {
    let output = Command::new("jfr").arg("summary").arg(recording).output();
    let text = String::from_utf8(output.ok()?.stdout).ok()?;
    let rows = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let name = words.next()?.to_owned();
        Some((name, words.next()?.parse().ok()?))
    });
    Some(rows.collect())
}

/// The same, where the second value is expected in ticks.
fn assert_same_in_ticks(ours: &Stacks, expected: &Stacks, ticks_per_second: i128, name: &str) {
    assert!(ours.keys().eq(expected.keys()), "{name}");
    for (stack, values) in expected {
        let [count, delay] = ours[stack][..] else {
            panic!("{name}: two columns");
        };
        assert_eq!(count, values[0], "{name}: {stack}");
        let exact = i128::from(values[1]) * 1_000_000_000 / ticks_per_second;
        // Each event is rounded down to a nanosecond.
        let off = exact - i128::from(delay);
        assert!(
            (0..=i128::from(count)).contains(&off),
            "{name}: {stack}: {off}"
        );
    }
}

mod host {
    use super::*;

    #[test]
    fn a_recording_of_this_jdk_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let Some(recording) = record(folder.path()) else {
            return;
        };
        let bytes = std::fs::read(&recording).unwrap();
        let options = JfrOptions::default();
        let (profile, report) = read_jfr(&bytes[..], &options, &ReadOptions::default()).unwrap();
        assert_eq!(profile.validate(), Ok(()));
        eprintln!("{:?}", report.notes);
        for code in [
            "stacks_unknown",
            "stacks_damaged",
            "methods_unknown",
            "events_damaged",
            "bytes_damaged",
            "recording_cut",
            "checkpoints_damaged",
        ] {
            assert_eq!(report.count(code), 0, "{code}");
        }
        let cpu = our_stacks(&profile, "process_cpu_cpu__nanoseconds");
        let mut by_leaf: BTreeMap<&str, i64> = BTreeMap::new();
        for (stack, values) in &cpu {
            let leaf = stack.rsplit(';').next().unwrap();
            let (method, _) = leaf.rsplit_once(':').unwrap_or((leaf, ""));
            *by_leaf.entry(method).or_default() += values[0];
        }
        let heaviest = by_leaf.iter().max_by_key(|(_, value)| **value);
        assert_eq!(heaviest.map(|(method, _)| *method), Some("Hot.burn"));

        let Some(counts) = summary(&recording) else {
            eprintln!("skipped: no jfr tool to compare with");
            return;
        };
        // `profile` samples every 10 ms; all other columns count one for each event.
        for (profile_type, event, value) in [
            ("process_cpu:cpu:", "jdk.ExecutionSample", 10_000_000),
            ("native:samples:", "jdk.NativeMethodSample", 1),
            (
                "memory:alloc_sample_objects:",
                "jdk.ObjectAllocationSample",
                1,
            ),
            ("mutex:contentions:", "jdk.JavaMonitorEnter", 1),
            ("block:contentions:", "jdk.ThreadPark", 1),
            ("wait:waits:", "jdk.JavaMonitorWait", 1),
            ("gc:pauses:", "jdk.GarbageCollection", 1),
            ("memory:live:", "jdk.OldObjectSample", 1),
        ] {
            let series = profile
                .series
                .iter()
                .find(|series| series.profile_type.to_string().starts_with(profile_type));
            let total = series.map_or(0, |series| series.total());
            let count = counts.get(event).copied().unwrap_or(0);
            assert_eq!(total, count * value, "{event}");
        }
        assert!(counts["jdk.GarbageCollection"] > 0 && counts["jdk.ExecutionSample"] > 0);
    }
}
