//! Programs whose stacks are known, and dumps as rows.

use std::io::Read;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;

use candela_formats::ReadOptions;
use candela_model::LabelValue;
use candela_model::Profile;
use candela_testing::expect_within;
use candela_testing::more_than;

const SOURCE: &str = r"
volatile unsigned long sink;
__attribute__((noinline)) void known_work(void) {
    for (unsigned long number = 0; number < 1000000; number++)
        sink += number * number;
}
__attribute__((noinline)) void known_caller(void) {
    for (;;)
        known_work();
}
int main(void) {
    known_caller();
    return 0;
}
";

pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A sample as the text has it.
pub(crate) struct Row {
    pub(crate) time_ns: i64,
    pub(crate) thread_name: String,
    pub(crate) numbers: Vec<String>,
    pub(crate) functions: Vec<String>,
}

/// Why the kernel is not to be had here.
pub(crate) fn cannot_sample() -> bool {
    let checks = candela_agent::capabilities();
    let missing = checks.iter().find(|check| check.required && !check.ok);
    if let Some(check) = missing {
        super::skipped(&format!(
            "cannot sample here: {} ({})",
            check.name, check.detail
        ));
    }
    missing.is_some()
}

/// Programs of these names, which do the same; `None` without a compiler.
pub(crate) fn build(folder: &Path, names: &[&str]) -> Option<Vec<Running>> {
    let source = folder.join("program.c");
    std::fs::write(&source, SOURCE).expect("written");
    let programs = names.iter().map(|name| {
        let program = folder.join(name);
        let built = Command::new("gcc")
            .args(["-O2", "-fno-optimize-sibling-calls", "-o"])
            .args([&program, &source])
            .status();
        if !built.is_ok_and(|status| status.success()) {
            super::skipped("gcc is not installed");
            return None;
        }
        let mut command = Command::new(&program);
        let child = command.stdout(Stdio::null()).spawn().expect("it starts");
        Some(Running(child))
    });
    programs.collect()
}

pub(crate) fn text_of(dump: &[u8]) -> String {
    let mut text = String::new();
    let mut reader = flate2::read::GzDecoder::new(dump);
    reader.read_to_string(&mut text).expect("gzip of text");
    text
}

/// None of a dump in whose time nothing ran that was asked for.
pub(crate) fn rows_of(text: &str) -> Vec<Row> {
    if text.lines().all(|line| line.starts_with('#')) {
        return Vec::new();
    }
    let read = candela_formats::read_perf_script(text.as_bytes(), &ReadOptions::default());
    let (profile, report) = read.expect("the text of perf script");
    assert!(report.notes.is_empty(), "{:?}", report.notes);
    let samples = profile.series.iter().flat_map(|series| &series.samples);
    let mut rows: Vec<Row> = samples.map(|sample| row_of(&profile, sample)).collect();
    rows.sort_by_key(|row| row.time_ns);
    rows
}

/// Checks dumps without call graphs: there are more samples than `least`, and more than that share of them in the function
/// that works.
#[track_caller]
pub(crate) fn check_innermost(rows: &[Row], least: usize, share: f64) {
    let samples = rows.len() as f64;
    expect_within("samples", samples, more_than(least as f64), "");
    assert!(rows.iter().all(|row| row.functions.len() <= 1));
    let known = rows.iter().filter(|row| row.functions == ["known_work"]);
    let known = known.count();
    let known = known as f64 / samples;
    expect_within(
        "share where the program works",
        known,
        more_than(share),
        samples,
    );
}

pub(crate) fn row_of(profile: &Profile, sample: &candela_model::Sample) -> Row {
    let symbols = &profile.symbols;
    let string = |id| symbols.strings.get(id).to_owned();
    let mut row = Row {
        time_ns: sample.time_ns,
        thread_name: String::new(),
        numbers: Vec::new(),
        functions: Vec::new(),
    };
    for label in profile.label_sets.get(sample.label_set) {
        match (string(label.key).as_str(), label.value) {
            ("thread_name", LabelValue::Text(name)) => row.thread_name = string(name),
            (name, LabelValue::Number { .. }) => row.numbers.push(name.to_owned()),
            _ => {}
        }
    }
    for &location in profile.stacks.get(sample.stack) {
        let lines = symbols.lines(location).iter();
        row.functions
            .extend(lines.map(|line| string(symbols.function(line.function).name)));
    }
    row
}
