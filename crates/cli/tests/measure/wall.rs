//! Wall time is the time that has passed: of a thread whose clock knows it, from the kernel over an agent
//! and a server, and out of files.

use std::path::Path;

use crate::support;
use crate::support::Running;
use candela_testing::expect_within;
use serde_json::Value;

/// A program of one thread that burns a quarter of its time and sleeps the rest, and tells how long it ran.
const WAITS: &[&str] = &["waits.c"];
/// What a clock and samples may differ by.
const TOLERANCE: f64 = 0.03;

/// Nanoseconds by the clock of the program, from what it has written.
fn elapsed_ns(truth: &Path) -> f64 {
    let truth = std::fs::read_to_string(truth).unwrap();
    truth.split_whitespace().next().unwrap().parse().unwrap()
}

/// The time that the hypervisor took from this machine since it started: nobody sees it.
fn stolen_ns() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let ticks: f64 = stat
        .lines()
        .next()
        .unwrap()
        .split_whitespace()
        .nth(8)
        .unwrap()
        .parse()
        .unwrap();
    ticks * 1e7
}

#[track_caller]
fn assert_has_passed(total: f64, elapsed_ns: f64, stolen_before_ns: f64, what: &str) {
    let off_by = total / elapsed_ns - 1.0;
    let stolen = (stolen_ns() - stolen_before_ns) / elapsed_ns;
    let what = format!("error of wall time, {what}");
    expect_within(&what, off_by, -TOLERANCE - stolen..TOLERANCE, elapsed_ns);
}

fn json(arguments: &[&str]) -> Value {
    let output = support::run(&[arguments, &["--format", "json"]].concat());
    support::expect_code(&output, 0);
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_wall_time_of_a_thread_is_what_has_passed() {
    let test = "the_wall_time_of_a_thread_is_what_has_passed";
    if !support::is_root(test) || !support::has_tool(test, "gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let program = support::compile_of_agent(folder.path(), "waits", WAITS, &[]);
    // What is stored as wall time besides its parts does not count once more.
    for (kinds, times) in [("cpu,off-cpu", 1), ("cpu,off-cpu,wall", 2)] {
        let data = path(&format!("data-{kinds}"));
        let server = Running::start(&["server", "--listen", "127.0.0.1:0", "--data-dir", &data]);
        let url = server.url("");
        let mut passed_ns = 0.0;
        let stolen_before_ns = stolen_ns();
        for _ in 0..times {
            let truth = path("truth");
            let record = ["record", "-F", "499", "-e", kinds, "--server", &url, "--"];
            let command = [program.to_str().unwrap(), "duty", "2000", &truth];
            support::expect_code(&support::run(&[&record[..], &command].concat()), 0);
            passed_ns += elapsed_ns(Path::new(&truth));
        }
        let total = |profile_type: &str| {
            let query = [
                "query",
                "tree",
                "--server",
                &url,
                "--query",
                "{service_name=\"waits\"}",
            ];
            let tree = json(&[&query[..], &["--type", profile_type]].concat());
            tree["total"].as_i64().unwrap()
        };
        let wall = total("wall");
        assert_eq!(wall, total("cpu") + total("off_cpu"), "{kinds}");
        assert_has_passed(wall as f64, passed_ns, stolen_before_ns, kinds);
        let series = "/api/v1/series?query=%7Bservice_name%3D%22waits%22%7D&type=wall&step=1";
        let lines = support::get_json(&server.url(series));
        let points = lines["series"][0]["points"].as_array().unwrap();
        let sum: i64 = points.iter().map(|point| point[1].as_i64().unwrap()).sum();
        assert_eq!(sum, wall, "{kinds}");
    }
}

#[test]
fn the_wall_time_of_a_file_is_what_has_passed_and_counts_once() {
    let test = "the_wall_time_of_a_file_is_what_has_passed_and_counts_once";
    if !support::is_root(test) || !support::has_tool(test, "gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let program = support::compile_of_agent(folder.path(), "waits", WAITS, &[]);
    for kinds in ["cpu,off-cpu", "wall", "cpu,off-cpu,wall"] {
        let (truth, file) = (path("truth"), path("waits.pb.gz"));
        let stolen_before_ns = stolen_ns();
        let record = ["record", "-F", "499", "-e", kinds, "-o", &file, "--"];
        let command = [program.to_str().unwrap(), "duty", "2000", &truth];
        support::expect_code(&support::run(&[&record[..], &command].concat()), 0);
        let tree = json(&["query", "tree", "--type", "wall", &file]);
        assert_eq!(tree["type"], "wall:wall:nanoseconds:wall:nanoseconds");
        let total = tree["total"].as_f64().unwrap();
        assert_has_passed(
            total,
            elapsed_ns(Path::new(&truth)),
            stolen_before_ns,
            kinds,
        );
        let types = json(&["query", "types", &file]).to_string();
        assert_eq!(types.matches("wall:wall:nanoseconds").count(), 1, "{types}");
        let folded = path("waits.folded");
        let convert = ["convert", &file, "--sample-type", "wall", "-o", &folded];
        support::expect_code(&support::run(&convert), 0);
        let lines = std::fs::read_to_string(&folded).unwrap();
        let values = lines.lines().map(|line| line.rsplit_once(' ').unwrap().1);
        let sum: f64 = values.map(|value| value.parse::<f64>().unwrap()).sum();
        assert_eq!(sum, total, "{kinds}");
    }
}
