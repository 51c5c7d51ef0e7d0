//! The chart of a recording is what its threads did, by their own account, and can be walked in a browser.

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::support;
use crate::support::Running;
use crate::support::walks;
use serde_json::Value;

/// A sample may be as late as its timer, and what a box stands for ends with the sample after it.
const TOLERANCE_NS: i64 = 60_000_000;

/// A piece of work by the program's own clock.
#[derive(Debug)]
struct Piece {
    thread: String,
    function: String,
    begun_ns: i64,
    ended_ns: i64,
    /// On a CPU.
    used_ns: i64,
}

/// A box of a function that the program tells of.
#[derive(Debug)]
struct Drawn {
    thread: String,
    function: String,
    start_ns: i64,
    end_ns: i64,
    /// Of its samples.
    value_ns: i64,
}

#[test]
fn lanes_are_what_threads_did_and_can_be_walked() {
    let test = "lanes_are_what_threads_did_and_can_be_walked";
    if !support::is_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path());
    let data_dir = folder.path().join("data");
    let server = Running::start(&[
        "server",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        data_dir.to_str().unwrap(),
    ]);
    let pieces = record(&server, &program);
    assert_eq!(pieces.len(), 7, "{pieces:?}");
    let drawn = drawn(&server);
    each_box_is_within_the_work_that_it_shows(&drawn, &pieces);
    each_piece_of_work_is_as_long_as_it_was(&drawn, &pieces);
    a_range_inside_the_recording_has_its_samples_alone(&server, &pieces);
    push_without_times(&server, folder.path());
    if walks::can_walk(test) {
        walk(&server, &pieces);
    }
}

fn compile(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/lanes.c");
    let program = folder.join("lanes");
    let status = Command::new("gcc")
        .args(["-O1", "-g", "-pthread", "-o"])
        .arg(&program)
        .arg(&source)
        .status()
        .unwrap();
    assert!(status.success(), "gcc compiles {}", source.display());
    program
}

/// Records the program from beginning to end, and returns what it says of itself.
fn record(server: &Running, program: &Path) -> Vec<Piece> {
    let output = support::run(&[
        "record",
        "-F",
        "199",
        "--server",
        &server.url(""),
        "--",
        program.to_str().unwrap(),
    ]);
    support::expect_code(&output, 0);
    let printed = support::stdout(&output);
    let pieces = printed.lines().filter_map(|line| {
        let mut words = line.split(' ');
        Some(Piece {
            thread: words.next()?.to_owned(),
            function: words.next()?.to_owned(),
            begun_ns: words.next()?.parse().ok()?,
            ended_ns: words.next()?.parse().ok()?,
            used_ns: words.next()?.parse().ok()?,
        })
    });
    pieces.collect()
}

fn chart(server: &Running) -> Value {
    support::eventually("the recording is there", || {
        let chart = support::get_json(
            &server
                .url("/api/v1/chart?query=%7Bservice_name%3D%22lanes%22%7D&type=cpu&from=now-10m"),
        );
        (chart["timed"].as_u64()? > 0).then_some(chart)
    })
}

/// The boxes of the functions that the program tells of, found on their stacks.
fn drawn(server: &Running) -> Vec<Drawn> {
    let chart = chart(server);
    assert!(chart["partial"].is_null(), "{chart:#}");
    let from_ns = chart["from_ns"].as_i64().unwrap();
    let stacks = chart["stacks"].as_array().unwrap();
    let function_of = |mut stack: usize| {
        loop {
            let name = stacks[stack]["name"].as_str().unwrap();
            if name == "lift" || name == "carry" {
                return Some(name.to_owned());
            }
            if stack == 0 {
                return None;
            }
            stack = stacks[stack]["parent"].as_u64().unwrap() as usize;
        }
    };
    let mut drawn = Vec::new();
    for lane in chart["lanes"].as_array().unwrap() {
        let thread = lane["labels"]["thread_name"].as_str().unwrap_or("");
        let mut end_of_last = i64::MIN;
        for one in lane["boxes"].as_array().unwrap() {
            let number = |place: usize| one[place].as_i64().unwrap();
            let (start, length) = (number(0), number(1));
            assert!(start >= end_of_last && length > 0, "{thread}: {one}");
            end_of_last = start + length;
            if let Some(function) = function_of(number(2) as usize) {
                drawn.push(Drawn {
                    thread: thread.to_owned(),
                    function,
                    start_ns: from_ns + start,
                    end_ns: from_ns + start + length,
                    value_ns: number(4),
                });
            }
        }
    }
    drawn
}

fn each_box_is_within_the_work_that_it_shows(drawn: &[Drawn], pieces: &[Piece]) {
    for drawn in drawn {
        let is_in = |piece: &Piece| {
            piece.thread == drawn.thread
                && piece.function == drawn.function
                && piece.begun_ns - TOLERANCE_NS <= drawn.start_ns
                && drawn.end_ns <= piece.ended_ns + TOLERANCE_NS
        };
        assert!(pieces.iter().any(is_in), "{drawn:?} in {pieces:#?}");
    }
}

/// Samples are as many as the time that the thread had on a CPU, which is what other programs leave it.
fn each_piece_of_work_is_as_long_as_it_was(drawn: &[Drawn], pieces: &[Piece]) {
    for piece in pieces {
        let of_piece = drawn.iter().filter(|it| {
            it.thread == piece.thread
                && it.function == piece.function
                && it.start_ns < piece.ended_ns
                && it.end_ns > piece.begun_ns
        });
        let seen_ns: i64 = of_piece.map(|it| it.value_ns).sum();
        let allowed_ns = piece.used_ns / 4 + TOLERANCE_NS;
        assert!(
            (seen_ns - piece.used_ns).abs() <= allowed_ns,
            "{seen_ns} ns of {piece:?}"
        );
    }
}

/// In the middle of the third piece of work the porter lifts, and nothing of what it did before and after is
/// there.
fn a_range_inside_the_recording_has_its_samples_alone(server: &Running, pieces: &[Piece]) {
    let mut lifts = pieces
        .iter()
        .filter(|piece| piece.thread == "porter" && piece.function == "lift");
    let third = lifts.nth(1).unwrap();
    let tolerance_ms = TOLERANCE_NS / 1_000_000;
    let from_ms = third.begun_ns / 1_000_000 + tolerance_ms;
    let to_ms = third.ended_ns / 1_000_000 - tolerance_ms;
    let top = support::get_json(&server.url(&format!(
        "/api/v1/top?query=%7Bservice_name%3D%22lanes%22%7D&type=cpu&focus=fn:%5Eporter%24&from={from_ms}&to={to_ms}&limit=0"
    )));
    let total_of = |name: &str| {
        let mut rows = top["functions"].as_array().unwrap().iter();
        let row = rows.find(|row| row["name"] == name);
        row.map_or(0, |row| row["total"].as_i64().unwrap())
    };
    let (lifted_ns, carried_ns) = (total_of("lift"), total_of("carry"));
    assert_eq!(carried_ns, 0, "{top:#}");
    assert!(
        lifted_ns <= third.used_ns + TOLERANCE_NS,
        "{third:?} {top:#}"
    );
    // What falls into the tolerance at both ends is not asked for.
    let is_surely_seen = third.used_ns > 3 * TOLERANCE_NS;
    assert!(lifted_ns > 0 || !is_surely_seen, "{third:?} {top:#}");
}

fn push_without_times(server: &Running, folder: &Path) {
    let file = folder.join("untimed.folded");
    std::fs::write(&file, "main;work 7\n").unwrap();
    let output = support::run(&[
        "push",
        file.to_str().unwrap(),
        "--service",
        "untimed",
        "--server",
        &server.url(""),
    ]);
    support::expect_code(&output, 0);
}

fn walk(server: &Running, pieces: &[Piece]) {
    let begun_ns = pieces.iter().map(|piece| piece.begun_ns).min();
    let ended_ns = pieces.iter().map(|piece| piece.ended_ns).max();
    let lifts = pieces.iter().filter(|piece| piece.function == "lift");
    let longest_lift_ns = lifts.map(|piece| piece.ended_ns - piece.begun_ns).max();
    let longest_box_ns = longest_lift_ns.unwrap() + 2 * TOLERANCE_NS;
    let screenshots = walks::screenshot_folder();
    walks::walk(
        server,
        "chart.mjs",
        &[
            &(begun_ns.unwrap() / 1_000_000 - 200).to_string(),
            &(ended_ns.unwrap() / 1_000_000 + 200).to_string(),
            &(longest_box_ns / 1_000_000).to_string(),
            screenshots.to_str().unwrap(),
        ],
    );
}
