//! Page faults: as many as the kernel counted, by what caused them.

use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;

use crate::support;
use candela_agent::Kind;
use candela_agent::RecordOptions;
use candela_agent::RecordTargets;
use candela_agent::Recording;
use candela_model::LabelValue;
use candela_model::Profile;

const FAULTS: &str = "page_faults:faults:count:faults:count";
const PAGES: i64 = 5000;

/// The most faults from one stack to the next: half as many again as the agent's interval.
const GAP: i64 = 384;

fn build(directory: &Path) -> PathBuf {
    let program = directory.join("touch");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ebpf/tests/programs/touch.c");
    let flags = ["-O2", "-g", "-fomit-frame-pointer", "-o"];
    let files = [program.clone(), source];
    support::run("gcc", flags.map(Into::into).into_iter().chain(files));
    program
}

fn options(targets: RecordTargets) -> RecordOptions {
    RecordOptions {
        kinds: [Kind::Fault].into(),
        ..RecordOptions::new(targets)
    }
}

/// The faults of a process, and those of them that came from a function.
fn faults_of(profile: &Profile, pid: u32, function: &str) -> (i64, i64) {
    let strings = &profile.symbols.strings;
    let of_type = profile
        .series
        .iter()
        .filter(|series| series.profile_type.to_string() == FAULTS);
    let of_process = of_type.flat_map(|series| &series.samples).filter(|sample| {
        let labels = profile.label_sets.get(sample.label_set);
        labels.iter().any(|label| {
            let is_pid = strings.get(label.key) == "pid";
            is_pid && matches!(label.value, LabelValue::Number { value, .. } if value == i64::from(pid))
        })
    });
    of_process.fold((0, 0), |(all, of_function), sample| {
        let locations = profile.stacks.get(sample.stack).iter();
        let mut names = locations.flat_map(|&location| support::names_of(profile, location));
        let is_of_function = names.any(|name| name == function);
        let part = if is_of_function { sample.value } else { 0 };
        (all + sample.value, of_function + part)
    })
}

#[test]
fn the_faults_of_a_command_are_those_that_the_kernel_counted() {
    if support::cannot_sample() || support::lacks("gcc") {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let told = directory.path().join("told");
    let mut command = Command::new(build(directory.path()));
    command
        .arg(PAGES.to_string())
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&told).expect("a file"));
    let Recording { profile, .. } =
        candela_agent::record(options(RecordTargets::Command(command)), || {})
            .unwrap_or_else(|error| panic!("{error}"));
    let told = std::fs::read_to_string(told).expect("it told");
    let (child, counted) = told.trim().split_once(' ').expect("two numbers");
    let child = child.parse().expect("a process id");
    let (faults, touched) = faults_of(&profile, child, "touch");
    assert_eq!(faults.to_string(), counted, "of all kinds");
    assert!((PAGES - GAP..=PAGES + GAP).contains(&touched), "{touched}");
    let (_, filled) = faults_of(&profile, child, "fill");
    assert!((PAGES - GAP..=PAGES + GAP).contains(&filled), "{filled}");
}

#[test]
fn faults_without_a_sample_are_told_at_the_end() {
    if support::cannot_sample() || support::lacks("gcc") {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut child = Command::new(build(directory.path()))
        .args(["1000", "hold"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it was just built");
    let pid = child.id();
    let mut stdin = child.stdin.take().expect("piped");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut said = || stdout.next().expect("a line").expect("text");
    stdin.write_all(b"\n").expect("it reads");
    assert_eq!(said(), "ready");
    let before = counted_faults(&child);
    let options = options(RecordTargets::Pids(vec![pid]));
    let recording = support::record_while(options, || {
        stdin.write_all(b"\n").expect("it reads");
        assert_eq!(said(), "touched");
    });
    let counted = counted_faults(&child) - before;
    child.kill().expect("it waits");
    child.wait().expect("it is ours");
    let (faults, touched) = faults_of(&recording.profile, pid, "touch");
    assert_eq!(faults, counted);
    assert!((1000 - GAP..=1000).contains(&touched), "{touched}");
}

/// The faults of all threads of a process, minflt and majflt of proc_pid_stat(5).
fn counted_faults(process: &Child) -> i64 {
    let mut stat = String::new();
    std::fs::File::open(format!("/proc/{}/stat", process.id()))
        .and_then(|mut file| file.read_to_string(&mut stat))
        .expect("it is there");
    let (_, fields) = stat.rsplit_once(") ").expect("a name in parentheses");
    let mut fields = fields.split(' ').skip(7).step_by(2);
    let mut number = || -> i64 {
        let field = fields.next().expect("a field");
        field.parse().expect("a number")
    };
    number() + number()
}
