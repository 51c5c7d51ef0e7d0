//! F1–F4: reading files, beside the tools that people use.

use std::fs;
use std::io::Read;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use std::time::Instant;

use candela_formats::ReadOptions;
use candela_formats::read_pprof;

use crate::Figure;
use crate::host::Bench;
use crate::process::output;
use crate::usage::Usage;
use crate::usage::least_of_turns;

/// Profiles of every format, beside the checkout.
const CORPUS: &str = "../shared/corpus";
const TURNS: usize = 5;
const PARSES: usize = 20;
const TIMES_GO: f64 = 3.0;
const TIMES_INFERNO: f64 = 2.0;
const TIMES_JDK: f64 = 5.0;
/// Large enough that the start of a program counts for nothing, and to show that memory is bounded
/// by what the profile holds.
const PERF_SCRIPT_BYTES: usize = 1_000_000_000;
const MOST_MEMORY: u64 = 500_000_000;
const MIB: f64 = (1 << 20) as f64;

/// A file of the corpus and the command that people read such files with; `FILE` stands for the file.
struct Sample {
    format: &'static str,
    file: &'static str,
    tool: &'static [&'static str],
}

/// The largest file of each format that has one, and tools that come with what writes it.
const SAMPLES: &[Sample] = &[
    Sample {
        format: "pprof",
        file: "pprof/large.cpu",
        tool: &["go", "tool", "pprof", "-raw", "FILE"],
    },
    Sample {
        format: "gperftools",
        file: "pprof-legacy/driver.cppbench.cpu",
        tool: &["google-pprof", "--text", "/bin/true", "FILE"],
    },
    Sample {
        format: "jfr",
        file: "jfr/goland-multichunk.jfr.gz",
        tool: &["jfr", "print", "FILE"],
    },
    Sample {
        format: "perf-data",
        file: "perf-data/sleep.compressed.data",
        tool: &["perf", "script", "-i", "FILE"],
    },
    Sample {
        format: "simpleperf",
        file: "perf-data/simpleperf-task-clock.trace.gz",
        tool: &[],
    },
    Sample {
        format: "perf-script",
        file: "perf-script/perf-iperf-stacks-pidtid-01.txt",
        tool: &["PEER", "FILE"],
    },
    Sample {
        format: "folded",
        file: "folded/perf-vertx-stacks-01-collapsed-all.txt",
        tool: &[],
    },
    Sample {
        format: "callgrind",
        file: "callgrind/pprof.cpu.call_tree.callgrind",
        tool: &["callgrind_annotate", "FILE"],
    },
    Sample {
        format: "nettrace",
        file: "nettrace/only_managed_samples.nettrace.zip",
        tool: &[],
    },
    Sample {
        format: "chrome-trace",
        file: "chrome-trace/chrome69.simple.json",
        tool: &[],
    },
    Sample {
        format: "v8",
        file: "v8/chrome69.heapprofile",
        tool: &[],
    },
    Sample {
        format: "firefox",
        file: "gecko/firefox63.simple.json",
        tool: &[],
    },
    Sample {
        format: "perfetto",
        file: "perfetto/perf_sample_switch_interp.pftrace",
        tool: &[],
    },
    Sample {
        format: "speedscope",
        file: "speedscope/0.0.1_simple.speedscope.json",
        tool: &[],
    },
    Sample {
        format: "stackprof",
        file: "other/stackprof.simple.json",
        tool: &[],
    },
    Sample {
        format: "dhat",
        file: "other/dhat.json.gz",
        tool: &[],
    },
    Sample {
        format: "instruments",
        file: "other/instruments.deep-copy.txt",
        tool: &[],
    },
    Sample {
        format: "pmcstat",
        file: "other/pmcstat.simple.txt",
        tool: &[],
    },
];

/// F1.
pub(crate) fn pprof(bench: &Bench) -> Result<Figure, String> {
    let file = corpus(bench, "pprof/large.cpu")?;
    let bytes = fs::read(&file).map_err(|error| error.to_string())?;
    let theirs = go_parse(bench, &file)?;
    let mut ours = Duration::MAX;
    for _ in 0..PARSES {
        let begun = Instant::now();
        let read = read_pprof(&bytes[..], &ReadOptions::default());
        let (profile, _) = read.map_err(|error| error.to_string())?;
        ours = ours.min(begun.elapsed());
        drop(profile);
    }
    let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
    Ok(Figure {
        text: format!(
            "{:.1} ms; Go's package {:.1} ms: {ratio:.1} times",
            ours.as_secs_f64() * 1e3,
            theirs.as_secs_f64() * 1e3
        ),
        is_met: Some(ratio >= TIMES_GO),
    })
}

/// F2, of a gigabyte. The peer is inferno's `inferno-collapse-perf`.
pub(crate) fn perf_script(bench: &Bench) -> Result<Figure, String> {
    let folder = bench.folder("f2")?;
    let file = folder.join("perf.txt");
    write_repeated(&corpus_texts(bench)?, &file)?;
    let mut programs = vec![to_folded(bench, &file)?];
    let peer = folding_peer(bench);
    programs.extend(peer.map(|peer| vec![peer.to_owned(), text_of(&file)]));
    let used = least_of_turns(TURNS, &folder, &programs)?;
    let length = fs::metadata(&file).map_err(|error| error.to_string())?;
    let speed = |usage: &Usage| length.len() as f64 / 1e6 / usage.seconds;
    let mut text = format!(
        "{:.0} MB/s, {:.0} MiB",
        speed(&used[0]),
        used[0].peak_bytes as f64 / MIB
    );
    let Some(theirs) = used.get(1) else {
        text.push_str("; peer not run");
        return Ok(Figure { text, is_met: None });
    };
    let ratio = theirs.seconds / used[0].seconds;
    text.push_str(&format!(
        "; inferno {:.0} MB/s, {:.0} MiB: {ratio:.1} times",
        speed(theirs),
        theirs.peak_bytes as f64 / MIB
    ));
    Ok(Figure {
        text,
        is_met: Some(ratio >= TIMES_INFERNO && used[0].peak_bytes < MOST_MEMORY),
    })
}

/// F3.
pub(crate) fn jfr(bench: &Bench) -> Result<Figure, String> {
    let folder = bench.folder("f3")?;
    let file = inflated(bench, "jfr/goland-multichunk.jfr.gz", &folder)?;
    let jdk = ["jfr", "print"].map(str::to_owned);
    let jdk = jdk.into_iter().chain([text_of(&file)]).collect();
    let used = least_of_turns(TURNS, &folder, &[to_folded(bench, &file)?, jdk])?;
    let ratio = used[1].seconds / used[0].seconds;
    Ok(Figure {
        text: format!(
            "{:.0} ms, {:.0} MiB; jfr print {:.0} ms, {:.0} MiB: {ratio:.0} times",
            used[0].seconds * 1e3,
            used[0].peak_bytes as f64 / MIB,
            used[1].seconds * 1e3,
            used[1].peak_bytes as f64 / MIB
        ),
        is_met: Some(ratio >= TIMES_JDK),
    })
}

/// F4: the largest file of each format, to folded stacks. Of small ones the start of the program is
/// most of the figure.
pub(crate) fn every_format(bench: &Bench) -> Result<Figure, String> {
    let folder = bench.folder("f4")?;
    let mut parts = Vec::new();
    for sample in SAMPLES {
        let file = inflated(bench, sample.file, &folder)?;
        let length = fs::metadata(&file).map_err(|error| error.to_string())?;
        let length = length.len();
        let ours = least_of_turns(TURNS, &folder, &[to_folded(bench, &file)?])?;
        let mut part = format!(
            "{} of {:.0} KB: {}",
            sample.format,
            length as f64 / 1e3,
            took(&ours[0])
        );
        let tool = tool_of(bench, sample, &file);
        // A tool that is not there, or that does not read the file, has no figure.
        let theirs = tool.and_then(|tool| least_of_turns(TURNS, &folder, &[tool]).ok());
        if let Some(theirs) = theirs {
            let name = sample.tool.iter().copied();
            let name: Vec<&str> = name.filter(|word| *word != "FILE").collect();
            part.push_str(&format!(" ({} {})", name.join(" "), took(&theirs[0])));
        }
        parts.push(part);
    }
    Ok(Figure {
        text: parts.join("; "),
        is_met: None,
    })
}

fn took(usage: &Usage) -> String {
    format!(
        "{:.0} ms, {:.0} MiB",
        usage.seconds * 1e3,
        usage.peak_bytes as f64 / MIB
    )
}

fn tool_of(bench: &Bench, sample: &Sample, file: &Path) -> Option<Vec<String>> {
    if sample.tool.is_empty() {
        return None;
    }
    let words = sample.tool.iter().map(|word| match *word {
        "FILE" => Some(text_of(file)),
        "PEER" => folding_peer(bench).map(str::to_owned),
        word => Some(word.to_owned()),
    });
    words.collect()
}

/// The peer, if it is the one that the target names.
fn folding_peer(bench: &Bench) -> Option<&str> {
    bench
        .peer()
        .filter(|path| Path::new(path).file_name() == Some("inferno-collapse-perf".as_ref()))
}

fn to_folded(bench: &Bench, file: &Path) -> Result<Vec<String>, String> {
    let candela = bench.binary("candela")?;
    let words = ["convert", "--quiet", "--to", "folded"].map(str::to_owned);
    let mut command = vec![text_of(&candela)];
    command.extend(words);
    command.push(text_of(file));
    Ok(command)
}

/// Go's own package, with which `go tool pprof` reads: the least time of a parse.
fn go_parse(bench: &Bench, file: &Path) -> Result<Duration, String> {
    let program = bench.folder("f1")?.join("parse");
    let source = bench.root().join("crates/formats/benches/go-pprof");
    let mut build = Command::new("go");
    build
        .args(["build", "-o"])
        .arg(&program)
        .current_dir(source);
    output(&mut build)?;
    let mut parse = Command::new(program);
    let printed = output(parse.arg(file).arg(PARSES.to_string()))?;
    let least = printed.split_whitespace().next().unwrap_or_default();
    let microseconds = least
        .parse()
        .map_err(|_| format!("the program printed {printed:?}"))?;
    Ok(Duration::from_micros(microseconds))
}

fn corpus(bench: &Bench, name: &str) -> Result<PathBuf, String> {
    let path = bench.root().join(CORPUS).join(name);
    if !path.is_file() {
        return Err(format!("{CORPUS}/{name} is not there"));
    }
    Ok(path)
}

/// A file of the corpus, without its compression if its name tells of any: the tools read none.
fn inflated(bench: &Bench, name: &str, folder: &Path) -> Result<PathBuf, String> {
    let path = corpus(bench, name)?;
    let Some(plain) = name.strip_suffix(".gz") else {
        return Ok(path);
    };
    let file = fs::File::open(&path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let mut decoder = flate2::read::MultiGzDecoder::new(file);
    decoder
        .read_to_end(&mut bytes)
        .map_err(|error| format!("{name}: {error}"))?;
    let inflated = folder.join(plain.replace('/', "-"));
    fs::write(&inflated, bytes).map_err(|error| error.to_string())?;
    Ok(inflated)
}

/// What `perf script` printed on several machines.
fn corpus_texts(bench: &Bench) -> Result<Vec<u8>, String> {
    let mut texts = Vec::new();
    for name in [
        "perf-iperf-stacks-pidtid-01.txt",
        "perf-rust-Yamakaky-dcpu.txt",
        "perf-cycles-instructions-01.txt",
    ] {
        let path = corpus(bench, &format!("perf-script/{name}"))?;
        texts.extend(fs::read(&path).map_err(|error| error.to_string())?);
        texts.push(b'\n');
    }
    Ok(texts)
}

fn write_repeated(bytes: &[u8], path: &Path) -> Result<(), String> {
    let file = fs::File::create(path).map_err(|error| error.to_string())?;
    let mut file = std::io::BufWriter::new(file);
    for _ in 0..PERF_SCRIPT_BYTES / bytes.len() {
        file.write_all(bytes).map_err(|error| error.to_string())?;
    }
    file.flush().map_err(|error| error.to_string())
}

fn text_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
