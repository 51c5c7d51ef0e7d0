//! How right the samples are: programs of which the truth is known.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use candela_formats::ReadOptions;
use candela_model::FlameTree;
use candela_model::FlameTreeBuilder;
use candela_model::LabelValue;
use candela_model::Profile;
use candela_model::Sample;

use crate::Figure;
use crate::host::Bench;
use crate::process::Program;
use crate::process::compile;
use crate::process::output;
use crate::process::shares as shares_program;

/// Outermost frames of threads: C programs, C libraries' threads, Go's goroutines and threads.
const ENTRIES: [&str; 11] = [
    "_start",
    "clone3",
    "__clone3",
    "clone",
    "__clone",
    "__GI___clone3",
    "thread_start",
    "runtime.goexit",
    "runtime.goexit.abi0",
    "runtime.mstart",
    "runtime.rt0_go",
];

/// A5: by language, the share of user stacks whose outermost frame is a thread's entry.
pub(crate) fn completeness(bench: &Bench) -> Result<Figure, String> {
    let folder = bench.folder("a5")?;
    let languages: [(&str, &str, &[&str]); 5] = [
        (
            "C",
            "crates/agent/tests/programs/shares.c",
            &["gcc", "-O2", "-g", "-fomit-frame-pointer"],
        ),
        (
            "C++",
            "bench/driver/programs/unwind.cc",
            &["g++", "-O2", "-g", "-fomit-frame-pointer"],
        ),
        (
            "Rust",
            "bench/driver/programs/unwind.rs",
            &["rustc", "-O", "-g", "--edition", "2024"],
        ),
        ("Go", "bench/driver/programs/unwind.go", &["go", "build"]),
        ("mixed", "bench/driver/programs/mixed.go", &["go", "build"]),
    ];
    let mut parts = Vec::new();
    let mut shares = Vec::new();
    for (language, source, compiler) in languages {
        let program = match compile(bench.root(), &folder, source, compiler) {
            Ok(program) => program,
            Err(reason) => {
                parts.push(format!(
                    "{language} not run ({})",
                    reason.lines().next().unwrap_or_default()
                ));
                continue;
            }
        };
        let running = Program::start(Command::new(&program).arg("100000"))?;
        let file = folder.join(format!("{language}.pb.gz"));
        record(
            bench,
            &["-p", &running.pid().to_string(), "-F", "997", "-d", "10s"],
            &file,
        )?;
        let tree = tree_of(&file)?;
        let complete: i64 = tree
            .children(0)
            .filter(|&node| ENTRIES.contains(&tree.frames.name(tree.frame[node])))
            .map(|node| tree.total[node])
            .sum();
        let share = complete as f64 / tree.root_total().max(1) as f64 * 100.0;
        let samples = tree.root_total() as f64 / (1e9 / 997.0);
        shares.push(share);
        parts.push(format!("{language} {share:.2} % of {samples:.0}"));
    }
    Ok(Figure {
        text: parts.join(", "),
        is_met: is_complete(&shares, languages.len()),
    })
}

/// Whether the stacks of all languages are complete, which nobody knows when one could not run.
fn is_complete(shares: &[f64], languages: usize) -> Option<bool> {
    let is_complete = shares.iter().all(|share| *share >= 99.5);
    (shares.len() == languages).then_some(is_complete)
}

/// A6: one hundred programs, each with a function name of its own.
pub(crate) fn short_programs(bench: &Bench) -> Result<Figure, String> {
    let folder = bench.folder("a6")?;
    let source = bench.root().join("bench/driver/programs/short.c");
    let programs: Vec<(String, PathBuf)> = (0..100)
        .map(|number| {
            let name = format!("burn_{number:03}");
            let program = folder.join(format!("short_{number:03}"));
            let mut compiler = Command::new("gcc");
            compiler.args([
                "-O2",
                "-g",
                "-fomit-frame-pointer",
                &format!("-DNAME={name}"),
                "-o",
            ]);
            output(compiler.arg(&program).arg(&source))?;
            Ok((name, program))
        })
        .collect::<Result<_, String>>()?;
    let script: String = programs
        .iter()
        .map(|(_, program)| format!("{}\n", program.display()))
        .collect();
    let script_file = folder.join("run-all");
    std::fs::write(&script_file, script).map_err(|error| error.to_string())?;
    let file = folder.join("all.pb.gz");
    // The whole host, so that nothing but the agent's own watch finds the programs.
    let recorder = Command::new(bench.binary("candela")?)
        .args(["record", "-a", "-F", "99", "-d", "40s", "-q", "-o"])
        .arg(&file)
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut recorder = recorder;
    // It begins when the unwind tables of what runs are there, after three seconds at most.
    crate::process::measure_for(std::time::Duration::from_secs(6));
    output(Command::new("sh").arg(&script_file))?;
    recorder.wait().map_err(|error| error.to_string())?;
    let tree = tree_of(&file)?;
    let rows = tree.function_table();
    let found = programs
        .iter()
        .filter(|(name, _)| rows.iter().any(|row| tree.frames.name(row.frame) == name))
        .count();
    Ok(Figure {
        text: format!("{found} of 100"),
        is_met: Some(found == 100),
    })
}

/// A7: the distance of each share from the truth, in standard errors.
pub(crate) fn shares(bench: &Bench) -> Result<Figure, String> {
    let folder = bench.folder("a7")?;
    let mut program = shares_program(bench.root(), &folder)?;
    let running = Program::start(&mut program)?;
    let file = folder.join("shares.pb.gz");
    record(
        bench,
        &["-p", &running.pid().to_string(), "-F", "499", "-d", "30s"],
        &file,
    )?;
    let tree = tree_of(&file)?;
    let samples = tree.root_total() as f64 / (1e9 / 499.0);
    let rows = tree.function_table();
    let mut parts = Vec::new();
    let mut worst = 0.0_f64;
    for (name, truth) in [
        ("burn_fifty", 0.5),
        ("burn_thirty", 0.3),
        ("burn_twenty", 0.2),
    ] {
        let value: i64 = rows
            .iter()
            .filter(|row| tree.frames.name(row.frame) == name)
            .map(|row| row.self_value)
            .sum();
        let share = value as f64 / tree.root_total().max(1) as f64;
        let distance = (share - truth).abs() / (truth * (1.0 - truth) / samples).sqrt();
        worst = worst.max(distance);
        parts.push(format!("{:.2} %", share * 100.0));
    }
    Ok(Figure {
        text: format!(
            "{} of {samples:.0} samples: {worst:.1} standard errors",
            parts.join(" / ")
        ),
        is_met: Some(worst <= 3.0),
    })
}

/// A8: how far the time off CPU is from what the program measured around its sleeps.
pub(crate) fn duty_cycle(bench: &Bench) -> Result<Figure, String> {
    let folder = bench.folder("a8")?;
    let program = folder.join("waits");
    let mut compiler = Command::new("gcc");
    compiler.args(["-O2", "-g", "-fomit-frame-pointer", "-pthread", "-o"]);
    let source = bench.root().join("crates/agent/tests/programs/waits.c");
    output(compiler.arg(&program).arg(source))?;
    let (file, truth) = (folder.join("duty.pb.gz"), folder.join("truth"));
    let candela = bench.binary("candela")?;
    let mut recorder = Command::new(candela);
    recorder.args(["record", "-e", "off-cpu", "-F", "499", "-q", "-o"]);
    recorder.arg(&file).arg("--").arg(&program);
    output(recorder.args(["duty", "20000"]).arg(&truth))?;
    let truth = std::fs::read_to_string(truth).map_err(|error| error.to_string())?;
    let asleep_ns: f64 = truth
        .split_whitespace()
        .nth(1)
        .and_then(|word| word.parse().ok())
        .ok_or_else(|| format!("the program told {truth:?}"))?;
    // What preempts it between its sleeps is off-CPU time, too, but none that it knows of.
    let recorded = read_profile(&file)?;
    let recorded_ns = off_cpu_ns(&recorded, |reason| reason != "preempted");
    let distance = recorded_ns / asleep_ns - 1.0;
    Ok(Figure {
        text: format!(
            "{:+.2} % of {:.1} s asleep",
            distance * 100.0,
            asleep_ns / 1e9
        ),
        is_met: Some(distance.abs() <= 0.02),
    })
}

/// The nanoseconds off CPU of the reasons that count.
fn off_cpu_ns(profile: &Profile, counts: impl Fn(&str) -> bool) -> f64 {
    let strings = &profile.symbols.strings;
    let of_type = profile
        .series
        .iter()
        .filter(|series| series.profile_type.sample_type == "off_cpu");
    let is_counted = |sample: &&Sample| {
        let mut labels = profile.label_sets.get(sample.label_set).iter();
        labels.any(|label| match label.value {
            LabelValue::Text(text) => {
                strings.get(label.key) == "off_cpu_reason" && counts(strings.get(text))
            }
            LabelValue::Number { .. } => false,
        })
    };
    let counted = of_type
        .flat_map(|series| &series.samples)
        .filter(is_counted);
    counted.map(|sample| sample.value as f64).sum()
}

fn record(bench: &Bench, arguments: &[&str], file: &Path) -> Result<(), String> {
    let candela = bench.binary("candela")?;
    output(
        Command::new(candela)
            .arg("record")
            .args(arguments)
            .arg("-q")
            .arg("-o")
            .arg(file),
    )
    .map(drop)
}

fn read_profile(file: &Path) -> Result<Profile, String> {
    let reader = BufReader::new(File::open(file).map_err(|error| error.to_string())?);
    let read = candela_formats::read_pprof(reader, &ReadOptions::default());
    read.map(|(profile, _)| profile)
        .map_err(|error| error.to_string())
}

fn tree_of(file: &Path) -> Result<FlameTree, String> {
    let profile = read_profile(file)?;
    let mut builder = FlameTreeBuilder::new();
    for position in 0..profile.series.len() {
        if profile.series[position].profile_type.sample_unit == "nanoseconds" {
            builder.add_series(&profile, position);
        }
    }
    Ok(builder.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_that_did_not_run_leaves_the_target_open() {
        assert_eq!(is_complete(&[], 4), None);
        assert_eq!(is_complete(&[100.0, 100.0, 100.0], 4), None);
        assert_eq!(is_complete(&[100.0, 99.5, 100.0, 99.9], 4), Some(true));
        assert_eq!(is_complete(&[100.0, 99.4, 100.0, 99.9], 4), Some(false));
    }
}
