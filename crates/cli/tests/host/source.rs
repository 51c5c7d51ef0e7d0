//! The source of a program whose lines have known shares: recorded for real, stored, and looked at in a
//! real browser and by the command.

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::support;
use crate::support::Running;
use crate::support::walks;
use candela_testing::expect_within;
use serde_json::Value;

const RATE_HZ: f64 = 499.0;

/// A copy of the program's source in a folder of its own, the program, and a recording of it.
fn record(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/lines.c");
    std::fs::copy(source, folder.join("lines.c")).unwrap();
    let compiled = Command::new("gcc")
        .args(["-O1", "-g", "-o", "lines", "lines.c"])
        .current_dir(folder)
        .status()
        .unwrap();
    assert!(compiled.success());
    let recording = folder.join("lines.pb.gz");
    let output = support::candela()
        .args(["record", "-q", "-F", &RATE_HZ.to_string(), "-o"])
        .arg(&recording)
        .arg("--")
        .arg(folder.join("lines"))
        .arg("2")
        .arg(folder.join("taken"))
        .output()
        .unwrap();
    support::expect_code(&output, 0);
    recording
}

/// What each of the three lines took by the program's own clock, parts of one.
fn shares_taken(folder: &Path) -> [f64; 3] {
    let text = std::fs::read_to_string(folder.join("taken")).unwrap();
    let seconds = text.split_whitespace().map(|it| it.parse::<f64>().unwrap());
    let seconds: [f64; 3] = seconds.collect::<Vec<f64>>().try_into().unwrap();
    let all: f64 = seconds.iter().sum();
    seconds.map(|it| it / all)
}

/// What stands in the three lines of `spend`.
const LINES: [&str; 3] = ["SPIN(first)", "SPIN(second)", "SPIN(third)"];

/// Share of `whole` of the line of `spend` that has this text, in percent, with or without what it calls.
fn share_of_line(answer: &Value, what: &str, column: &str, whole: &Value) -> f64 {
    let text = answer["source"]["text"].as_str().unwrap();
    let number = 1 + text.lines().position(|line| line.contains(what)).unwrap();
    let lines = answer["place"]["lines"].as_array().unwrap().iter();
    let mut of_line = lines.filter(|line| line["line"] == number);
    let value = of_line.next().map(|line| line[column].as_f64().unwrap());
    100.0 * value.unwrap_or(0.0) / whole.as_f64().unwrap()
}

fn assert_shares(answer: &Value, taken: [f64; 3], tolerance: fn(f64, f64) -> f64) {
    let whole = &answer["place"]["self"];
    let samples = whole.as_f64().unwrap() / (1e9 / RATE_HZ);
    for (what, part) in LINES.into_iter().zip(taken) {
        let share = share_of_line(answer, what, "self", whole);
        let expected = 100.0 * part;
        let allowed = 100.0 * tolerance(part, samples);
        let off_by = (share - expected).abs();
        let what = format!("percent that the share of line {what} is off by");
        expect_within(&what, off_by, ..allowed, format_args!("{answer:#}"));
    }
}

#[test]
fn lines_have_the_shares_that_they_were_given() {
    let test = "lines_have_the_shares_that_they_were_given";
    check_lines(test, support::tolerance);
}

/// Looks at the source of a recorded program. Shares of its lines may be off by `tolerance` of a share among so many
/// samples.
pub(crate) fn check_lines(test: &str, tolerance: fn(f64, f64) -> f64) {
    if !support::is_root(test) || !support::has_tool(test, "gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder_path = folder.path().canonicalize().unwrap();
    let recording = record(&folder_path);
    let recording = recording.to_str().unwrap();

    // The command over the file, whose text is read from where it was compiled.
    let of_file = support::run(&["query", "source", "spend", recording, "--format", "json"]);
    support::expect_code(&of_file, 0);
    let of_file: Value = serde_json::from_slice(&of_file.stdout).unwrap();
    let taken = shares_taken(&folder_path);
    assert_shares(&of_file, taken, tolerance);
    let text = support::run(&["query", "source", "spend", recording]);
    support::expect_code(&text, 0);
    let text = support::stdout(&text);
    assert!(
        text.contains("SPIN(first) /* the hottest line of all */"),
        "{text}"
    );
    let evening = support::run(&[
        "query",
        "source",
        "spend",
        recording,
        "--show-from",
        "fn:^evening$",
        "--format",
        "json",
    ]);
    let evening: Value = serde_json::from_slice(&evening.stdout).unwrap();
    let hottest = |answer: &Value| answer["place"]["hottest_line"].as_u64().unwrap();
    assert_eq!(hottest(&evening), hottest(&of_file) + 2);
    let nobody = support::run(&["query", "source", "nobody", recording]);
    support::expect_code(&nobody, 5);

    // The same of a server that knows the folder.
    let data_dir = folder_path.join("data");
    let server = Running::try_start(
        &[
            "server",
            "--listen",
            "127.0.0.1:0",
            "--data-dir",
            data_dir.to_str().unwrap(),
        ],
        &[(
            "CANDELA_SERVER__SOURCE_ROOTS",
            folder_path.to_str().unwrap(),
        )],
    )
    .unwrap();
    let url = server.url("");
    let pushed = support::run(&["push", recording, "--service", "lines", "--server", &url]);
    support::expect_code(&pushed, 0);
    let asked = ["--server", &url, "--from", "now-1d"];
    let of_server = ["query", "source", "spend", "--format", "json"];
    let of_server = support::run(&[&of_server[..], &asked].concat());
    support::expect_code(&of_server, 0);
    let of_server: Value = serde_json::from_slice(&of_server.stdout).unwrap();
    assert_eq!(of_server["place"], of_file["place"]);
    assert_eq!(of_server["total"], of_file["total"]);
    let code = support::run(&[&["query", "disassembly", "spend"][..], &asked].concat());
    support::expect_code(&code, 0);
    let code = support::stdout(&code);
    assert!(
        code.contains("imul") && code.contains("spend at 0x"),
        "{code}"
    );

    walk_in_browser(test, &server, &of_server);
}

/// What the page says is what the server says, which was compared with the truth.
fn walk_in_browser(test: &str, server: &Running, answer: &Value) {
    if !walks::can_walk(test) {
        return;
    }
    let screenshots = walks::screenshot_folder();
    let shown = ["spend", screenshots.to_str().unwrap()];
    let seen = walks::walk(server, "source.mjs", &shown);
    let share_of = |what: &str| {
        let lines = seen["lines"].as_array().unwrap().iter();
        let mut of_line = lines.filter(|line| line["text"].as_str().unwrap().contains(what));
        of_line.next().unwrap()["share"].as_f64().unwrap()
    };
    for what in LINES {
        let difference = share_of(what) - share_of_line(answer, what, "total", &answer["total"]);
        assert!(difference.abs() < 0.1, "{what}: {answer:#} {seen:#}");
    }
}
