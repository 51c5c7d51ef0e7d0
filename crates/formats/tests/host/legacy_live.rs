//! What Go, gperftools and jemalloc write here and now, against their own tools.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on should stop, and a skipped one says why"
)]

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use candela_formats::Format;
use candela_formats::ReadOptions;
use candela_formats::detect;
use candela_formats::read;
use candela_model::Profile;
use candela_model::ProfileSeries;
use tempfile::TempDir;

use crate::common;

/// What functions have themselves and with what they call.
type Table = BTreeMap<String, (i64, i64)>;

/// Whether something that the test needs is missing; then it says so.
fn is_missing(tool: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", "command -v \"$0\" || test -e \"$0\"", tool])
        .output();
    let is_missing = !found.unwrap().status.success();
    if is_missing {
        eprintln!("skipped: {tool} is not installed");
    }
    is_missing
}

/// What a command prints; it must succeed.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn program(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/programs");
    folder.join(name)
}

fn read_file(path: &Path, format: Format) -> Profile {
    let bytes = fs::read(path).unwrap();
    assert_eq!(detect(&bytes), Some(format), "{}", path.display());
    let (profile, report) = read(format, &bytes[..], &ReadOptions::default()).unwrap();
    assert_eq!(
        report.count("lines_not_understood"),
        0,
        "{}",
        path.display()
    );
    profile.validate().unwrap();
    profile
}

/// Self and total of each function; `name` gives those of frames that have none in the profile.
fn table(profile: &Profile, series: &ProfileSeries, name: &dyn Fn(u64) -> Option<String>) -> Table {
    let symbols = &profile.symbols;
    let mut table = Table::new();
    for sample in &series.samples {
        let frames = profile.stacks.get(sample.stack).iter().flat_map(|&id| {
            let lines = symbols.lines(id).iter();
            let mut names: Vec<String> = lines
                .map(|line| {
                    symbols
                        .strings
                        .get(symbols.function(line.function).name)
                        .to_owned()
                })
                .collect();
            if names.is_empty() {
                let address = symbols.location(id).address;
                names.push(name(address).unwrap_or_else(|| format!("{address:#x}")));
            }
            names
        });
        let frames: Vec<String> = frames.collect();
        if let Some(leaf) = frames.first() {
            table.entry(leaf.clone()).or_default().0 += sample.value;
        }
        for frame in frames.into_iter().collect::<BTreeSet<_>>() {
            table.entry(frame).or_default().1 += sample.value;
        }
    }
    table
}

fn no_name(_: u64) -> Option<String> {
    None
}

#[test]
fn gos_texts_tell_the_same_as_its_pprof() {
    // The second is Debian's golang-1.19-go, the last that does not scale mutexes itself.
    for go in ["go", "/usr/lib/go-1.19/bin/go"] {
        if !is_missing(go) {
            compare_texts_of(go);
        }
    }
}

fn compare_texts_of(go: &str) {
    let folder = TempDir::new().unwrap();
    let binary = folder.path().join("profiles");
    let source = program("profiles.go");
    run(Command::new(go)
        .args(["build", "-o"])
        .arg(&binary)
        .arg(&source)
        .env("GOFLAGS", "-mod=mod")
        .current_dir(folder.path()));
    run(Command::new(&binary).arg(folder.path()));
    for name in ["heap", "goroutine", "threadcreate", "block", "mutex"] {
        let mut attempts = (0..5).map(|attempt| folder.path().join(attempt.to_string()));
        let same_moment = attempts.find(|attempt| {
            let read = |suffix| read_file(&attempt.join(format!("{name}.{suffix}")), Format::Pprof);
            let (before, after) = (read("before"), read("after"));
            let totals = |profile: &Profile| -> Vec<i64> {
                profile.series.iter().map(ProfileSeries::total).collect()
            };
            totals(&before) == totals(&after)
        });
        let attempt = same_moment.expect("a quiet moment");
        compare_with_pprof(&attempt, name);
    }
}

fn compare_with_pprof(attempt: &Path, name: &str) {
    let bytes = fs::read(attempt.join(format!("{name}.before"))).unwrap();
    let options = ReadOptions {
        profile_name: (name == "block").then(|| name.to_owned()),
        ..ReadOptions::default()
    };
    let (pprof, _) = read(Format::Pprof, &bytes[..], &options).unwrap();
    let text = read_file(&attempt.join(format!("{name}.1")), Format::LegacyText);
    assert_eq!(text.series.len(), pprof.series.len(), "{name}");
    for (found, expected) in text.series.iter().zip(&pprof.series) {
        assert_eq!(found.profile_type, expected.profile_type);
        assert_eq!(
            found.total(),
            expected.total(),
            "{name}: {}",
            found.profile_type
        );
        let (found, expected) = (
            table(&text, found, &no_name),
            table(&pprof, expected, &no_name),
        );
        match name {
            // Here pprof has the frames of the runtime that wait, and the call that writes differs.
            "goroutine" | "threadcreate" => compare_waiting(&found, &expected, 6),
            _ => assert_eq!(found, expected, "{name}"),
        }
    }
    let names: BTreeSet<String> = table(&text, &text.series[0], &no_name)
        .into_keys()
        .collect();
    let expected = match name {
        "heap" => "main.keepSmall",
        "goroutine" => "main.waitForever",
        "threadcreate" => return,
        _ => "main.contend",
    };
    assert!(names.contains(expected), "{name}: {names:?}");
    if name == "goroutine" {
        let has_label = |line: &String| line.contains("[job=a \"b\"] main.waitForever 1");
        assert!(common::folded_lines(&text).iter().any(has_label));
        let dump = read_file(&attempt.join("goroutine.2"), Format::GoStacks);
        assert_eq!(dump.series[0].total(), text.series[0].total());
        let (found, expected) = (
            table(&dump, &dump.series[0], &no_name),
            table(&text, &text.series[0], &no_name),
        );
        compare_waiting(&found, &expected, 6);
    }
}

/// Compares what the program itself called and what waits.
fn compare_waiting(found: &Table, expected: &Table, waiting: i64) {
    let of_program = |table: &Table| -> BTreeMap<String, i64> {
        let totals = table
            .iter()
            .map(|(name, (_, total))| (name.clone(), *total));
        totals
            .filter(|(name, _)| name.starts_with("main."))
            .collect()
    };
    assert_eq!(of_program(found), of_program(expected));
    if let Some(total) = of_program(found).get("main.waitForever") {
        assert_eq!(*total, waiting);
    }
}

/// The C program, built in a folder; addresses in it are those of its file.
fn c_program() -> Option<(TempDir, PathBuf)> {
    if is_missing("gcc") || is_missing("nm") {
        return None;
    }
    let folder = TempDir::new().unwrap();
    let binary = folder.path().join("work");
    run(Command::new("gcc")
        .args(["-O1", "-g", "-no-pie", "-fno-omit-frame-pointer", "-o"])
        .arg(&binary)
        .arg(program("allocates_and_spins.c")));
    Some((folder, binary))
}

/// Where the functions of the program begin, by `nm`.
fn functions(binary: &Path) -> BTreeMap<u64, String> {
    let symbols = run(Command::new("nm").arg(binary));
    let functions = symbols.lines().filter_map(|line| {
        let (address, rest) = line.split_once(' ')?;
        let name = rest
            .strip_prefix("T ")
            .or_else(|| rest.strip_prefix("t "))?;
        Some((u64::from_str_radix(address, 16).ok()?, name.to_owned()))
    });
    functions.collect()
}

/// The library that is loaded first, on Debian.
fn library(name: &str) -> String {
    let folder = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    format!("{folder}/{name}")
}

/// The table of `pprof --text` and its kin: flat, three shares, total, share, name.
fn table_of_tool(text: &str) -> Table {
    let rows = text.lines().filter_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [flat, _, _, total, _, name] = columns[..] else {
            return None;
        };
        Some((name.to_owned(), (flat.parse().ok()?, total.parse().ok()?)))
    });
    rows.collect()
}

/// Compares the totals of the program's own functions, which are all at least once in `expected`.
/// What the tool adds up before it rounds we cut off for each stack.
fn compare_totals(found: &Table, expected: &Table, names: &[&str], tolerance: i64) {
    for name in names {
        let total = |table: &Table| table.get(*name).map_or(0, |(_, total)| *total);
        let (found, expected) = (total(found), total(expected));
        assert!(expected > 0, "{name} is not in the tool's table");
        assert!(
            (found - expected).abs() <= tolerance,
            "{name}: {found}, not {expected}"
        );
    }
}

fn in_program(profile: &Profile, series: &ProfileSeries, binary: &Path) -> Table {
    let functions = functions(binary);
    let end = functions.keys().last().copied().unwrap_or(0);
    table(profile, series, &|address| {
        let before = functions.range(..=address).next_back();
        let (_, name) = before.filter(|_| address < end + 0x1000)?;
        Some(name.clone())
    })
}

#[test]
fn cpu_profiles_of_gperftools_are_as_its_tool_shows_them() {
    let library = library("libprofiler.so.0");
    if is_missing("google-pprof") || is_missing(&library) {
        return;
    }
    let Some((folder, binary)) = c_program() else {
        return;
    };
    let path = folder.path().join("cpu.prof");
    run(Command::new(&binary)
        .env("LD_PRELOAD", &library)
        .env("CPUPROFILE", &path));
    let profile = read_file(&path, Format::GperftoolsCpu);
    let expected = run(Command::new("google-pprof")
        .arg("--text")
        .args([&binary, &path]));
    let expected = table_of_tool(&expected);
    let found = in_program(&profile, &profile.series[0], &binary);
    compare_totals(&found, &expected, &["spin", "caller", "main", "_start"], 0);
    assert_eq!(found["spin"].0, expected["spin"].0);
    assert_eq!(
        profile.series[1].total(),
        profile.series[0].total() * profile.series[0].period
    );
}

#[test]
fn heap_profiles_of_gperftools_are_as_its_tool_shows_them() {
    let library = library("libtcmalloc.so.4");
    if is_missing("google-pprof") || is_missing(&library) {
        return;
    }
    let Some((folder, binary)) = c_program() else {
        return;
    };
    run(Command::new(&binary)
        .env("LD_PRELOAD", &library)
        .env("HEAPPROFILE", folder.path().join("heap")));
    let path = folder.path().join("heap.0001.heap");
    let profile = read_file(&path, Format::LegacyText);
    let tool = |index: &str| {
        table_of_tool(&run(Command::new("google-pprof")
            .args(["--text", "--show_bytes", index])
            .args([&binary, &path])))
    };
    let kept = ["small_blocks", "large_blocks", "main", "_start"];
    let all = ["small_blocks", "large_blocks", "given_back", "main"];
    let found = in_program(&profile, &profile.series[1], &binary);
    compare_totals(&found, &tool("--alloc_space"), &all, 0);
    let found = in_program(&profile, &profile.series[3], &binary);
    compare_totals(&found, &tool("--inuse_space"), &kept, 0);
    assert!(!found.contains_key("given_back"));
    // What the program says of itself.
    assert_eq!(found["small_blocks"].1, 2000 * 600);
    assert_eq!(found["large_blocks"].1, 20 * 300_000);
}

#[test]
fn profiles_of_jemalloc_are_as_its_tool_shows_them() {
    let library = library("libjemalloc.so.2");
    if is_missing("jeprof") || is_missing(&library) {
        return;
    }
    let Some((folder, binary)) = c_program() else {
        return;
    };
    for accumulates in [false, true] {
        let prefix = folder.path().join(format!("je-{accumulates}"));
        let settings = format!(
            "prof:true,prof_final:true,lg_prof_sample:12,prof_accum:{accumulates},prof_prefix:{}",
            prefix.display()
        );
        run(Command::new(&binary)
            .env("LD_PRELOAD", &library)
            .env("MALLOC_CONF", settings));
        let mut entries = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let start = prefix.display().to_string();
        let path = entries.find(|path| path.display().to_string().starts_with(&start));
        let path = path.expect("a profile at the end");
        let profile = read_file(&path, Format::Jemalloc);
        assert_eq!(profile.series.len(), if accumulates { 4 } else { 2 });
        let tool = |index: &str| {
            table_of_tool(&run(Command::new("jeprof")
                .args(["--text", "--show_bytes", index])
                .args([&binary, &path])))
        };
        let stacks = i64::try_from(profile.stacks.len()).unwrap();
        let kept = ["small_blocks", "large_blocks", "main"];
        let in_use = profile.series.last().unwrap();
        let found = in_program(&profile, in_use, &binary);
        compare_totals(&found, &tool("--inuse_space"), &kept, stacks);
        // Sampling is right on average, and these are many.
        let small = found["small_blocks"].1;
        assert!(
            (900_000..1_600_000).contains(&small),
            "{small} of 1200000 bytes"
        );
        if accumulates {
            let found = in_program(&profile, &profile.series[1], &binary);
            let all = ["small_blocks", "large_blocks", "given_back", "main"];
            compare_totals(&found, &tool("--alloc_space"), &all, stacks);
        }
    }
}
