//! Fuzzing that is led by coverage, on stable Rust: the compiler's coverage pass and the libFuzzer
//! that comes with clang, which is there for the BPF programs anyway.

use std::path::Path;
use std::path::PathBuf;

use crate::process::output;
use crate::process::root;
use crate::process::run_with;
use crate::process::say;

const DEFAULT_SECONDS: &str = "60";
/// As `scripts/install-deps` looks for it.
const CLANGS: [&str; 7] = [
    "clang", "clang-22", "clang-19", "clang-17", "clang-16", "clang-15", "clang-14",
];
const RUNTIME: &str = "libclang_rt.fuzzer-x86_64.a";
/// With this given, flags are not those of build scripts and macros.
const TRIPLE: &str = "x86_64-unknown-linux-gnu";
/// What each input may take: more is a finding.
const LIMITS: [&str; 3] = ["-rss_limit_mb=2048", "-timeout=10", "-max_len=65536"];

/// `fuzz [TARGET…] [--seconds N]`: each target, or those named, for so long. Corpora stay from run
/// to run, beside the target directory.
pub(crate) fn fuzz(arguments: &[String]) -> Result<(), String> {
    let mut wanted: Vec<&str> = Vec::new();
    let mut seconds = DEFAULT_SECONDS;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--seconds" {
            let value = rest.next().filter(|value| value.parse::<u32>().is_ok());
            seconds = value.ok_or("--seconds needs a number")?;
        } else {
            wanted.push(argument);
        }
    }
    let seeds_program = ["run", "--quiet", "--package", "candela-fuzz", "--"];
    let known = output("cargo", &[&seeds_program[..], &["targets"]].concat())?;
    if let Some(name) = wanted
        .iter()
        .find(|name| !known.lines().any(|it| it == **name))
    {
        let known: Vec<&str> = known.lines().collect();
        return Err(format!("no target {name}; there are {}", known.join(" ")));
    }
    let folder = target_folder();
    build(&folder)?;
    let program = folder.join(TRIPLE).join("fuzz/candela-fuzz");
    for name in known.lines() {
        if !wanted.is_empty() && !wanted.contains(&name) {
            continue;
        }
        let corpus = make_folder(&folder, "corpus", name)?;
        let artifacts = make_folder(&folder, "artifacts", name)?;
        let seeds = ["seeds", name, &corpus];
        output("cargo", &[&seeds_program[..], &seeds].concat())?;
        let artifact_prefix = format!("-artifact_prefix={artifacts}/");
        let time = format!("-max_total_time={seconds}");
        let mut arguments = vec![&*corpus, &*artifact_prefix, &*time, "-print_final_stats=1"];
        arguments.extend(LIMITS);
        run_with(
            ".",
            &program.to_string_lossy(),
            &arguments,
            &[("CANDELA_FUZZ_TARGET", name)],
        )
        .map_err(|error| {
            format!(
                "{error}; the input is in {artifacts}: mend the reader, and keep the input in \
                 fuzz/regressions/{name}"
            )
        })?;
    }
    Ok(())
}

/// A target directory of its own: other flags would have everything else built again.
fn target_folder() -> PathBuf {
    let usual = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let mut name = usual
        .unwrap_or_else(|| root().join("target"))
        .into_os_string();
    name.push("-fuzz");
    PathBuf::from(name)
}

fn make_folder(folder: &Path, kind: &str, name: &str) -> Result<String, String> {
    let path = folder.join(kind).join(name);
    std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path.to_string_lossy().into_owned())
}

fn build(folder: &Path) -> Result<(), String> {
    let runtime = runtime()?;
    let coverage = [
        "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4",
        "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
        "-Cllvm-args=-sanitizer-coverage-pc-table",
        "-Cllvm-args=-sanitizer-coverage-trace-compares",
    ]
    .join(" ");
    let flags = format!("{coverage} -Clink-arg={runtime} -Clink-arg=-lstdc++");
    let arguments = [
        "build",
        "--package",
        "candela-fuzz",
        "--features",
        "libfuzzer",
        "--profile",
        "fuzz",
        "--target",
        TRIPLE,
    ];
    let folder = folder.to_string_lossy();
    let environment = [("RUSTFLAGS", &*flags), ("CARGO_TARGET_DIR", &*folder)];
    run_with(".", "cargo", &arguments, &environment)
}

/// Where clang's libFuzzer is.
fn runtime() -> Result<String, String> {
    let chosen = std::env::var("CLANG").ok();
    let candidates = chosen.as_deref().into_iter().chain(CLANGS);
    for clang in candidates {
        let Ok(path) = output(clang, &[&*format!("-print-file-name={RUNTIME}")]) else {
            continue;
        };
        let path = path.trim();
        if Path::new(path).is_file() {
            return Ok(path.to_owned());
        }
        say(&format!("{clang} is installed without {RUNTIME}"));
    }
    Err(format!(
        "no clang with {RUNTIME}: install libclang-rt-dev, or libclang-rt-19-dev for clang-19"
    ))
}
