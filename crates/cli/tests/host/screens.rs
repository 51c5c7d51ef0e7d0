//! Every screen of the window on demo data, in a real browser: what readers of other profilers complain about, and
//! barriers.

use std::path::Path;
use std::process::Command;

use crate::support;
use crate::support::Running;
use crate::support::walks;
use crate::support::walks::can_walk;
use crate::support::walks::walk;
use serde_json::Value;

/// The moment of the pictures, as in `ui/e2e/goldens.mjs`.
const MOMENT_OF_PICTURES: &str = "1795176000";

/// A demo, unless there is no browser here.
fn demo(test: &str, folder: &Path) -> Option<Running> {
    demo_with(test, folder, &[])
}

fn demo_with(test: &str, folder: &Path, options: &[&str]) -> Option<Running> {
    let data_dir = folder.join("data");
    let listening = ["--listen", "127.0.0.1:0"];
    let arguments = demo_arguments(&data_dir, &[&listening, options].concat());
    can_walk(test).then(|| Running::start(&arguments))
}

fn demo_arguments<'a>(data_dir: &'a Path, options: &[&'a str]) -> Vec<&'a str> {
    let fixed = [
        "demo",
        "--seed",
        "1",
        "--data-dir",
        data_dir.to_str().unwrap(),
    ];
    [&fixed, options].concat()
}

/// A server that takes a name for its own which is none of this machine.
fn server_with_a_name(name: &str, data_dir: &str) -> Running {
    let arguments = ["server", "--listen", "127.0.0.1:0", "--data-dir", data_dir];
    Running::try_start(&arguments, &[("CANDELA_SERVER__ALLOWED_HOSTS", name)]).unwrap()
}

/// Each of the list by its number. Who may make networks runs server and browser in one where there is no other host.
#[test]
fn complaints_about_others_do_not_apply() {
    let test = "complaints_about_others_do_not_apply";
    if !can_walk(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("data");
    let seen = if support::is_root(test) {
        let server = Running::start_in_own_network(&demo_arguments(&data_dir, &[]));
        let mut node = Command::new("nsenter");
        node.args(["--target", &server.pid().to_string(), "--net", "node"]);
        walks::run_by(node, &server, "e2e/complaints.mjs", &[&server.url("/")])
    } else {
        let server = demo(test, folder.path()).unwrap();
        walk(&server, "complaints.mjs", &[])
    };
    walks::assert_no_problems(&seen);
    let walked: Vec<&str> = strings(&seen["walked"]);
    for number in 1..=30 {
        let begins = format!("{number:02} ");
        let is_walked = walked.iter().any(|name| name.starts_with(&begins));
        assert!(is_walked, "nothing walks complaint {number}: {walked:#?}");
    }
}

fn strings(list: &Value) -> Vec<&str> {
    let list = list.as_array().unwrap().iter();
    list.map(|text| text.as_str().unwrap()).collect()
}

#[test]
fn screens_have_no_barriers_in_either_theme() {
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = demo("screens_have_no_barriers_in_either_theme", folder.path()) else {
        return;
    };
    let seen = walk(&server, "axe.mjs", &["checkout"]);
    assert!(seen["rules"].as_u64().unwrap() > 100, "{seen:#}");
}

#[test]
fn services_labels_heatmap_and_status_can_be_walked() {
    let folder = tempfile::tempdir().unwrap();
    let test = "services_labels_heatmap_and_status_can_be_walked";
    let Some(server) = demo(test, folder.path()) else {
        return;
    };
    walk(&server, "screens.mjs", &["checkout"]);
}

#[test]
fn a_newcomer_finds_the_way_by_what_stands_on_the_screen() {
    let folder = tempfile::tempdir().unwrap();
    let test = "a_newcomer_finds_the_way_by_what_stands_on_the_screen";
    let Some(server) = demo(test, folder.path()) else {
        return;
    };
    walk(&server, "newcomer.mjs", &[]);
}

/// What the command line says of files.
fn asked(arguments: &[&str]) -> Value {
    let output = support::run(arguments);
    support::expect_code(&output, 0);
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn files_are_looked_at_and_compared_and_stay_where_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let test = "files_are_looked_at_and_compared_and_stay_where_they_are";
    let Some(server) = demo(test, folder.path()) else {
        return;
    };
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (before, after) = (path("before.pb.gz"), path("after.pb.gz"));
    let (folded, damaged) = (path("stacks.folded"), path("damaged.pb.gz"));
    for (file, range) in [
        (&before, "from=now-12h&to=now-11h"),
        (&after, "from=now-1h&to=now"),
    ] {
        let query = "query=%7Bservice_name%3D%22checkout%22%7D";
        let (status, body) = support::get(&server.url(&format!("/api/v1/pprof?{query}&{range}")));
        assert_eq!(status, 200);
        std::fs::write(file, body).unwrap();
    }
    let converted = support::run(&["convert", &after, "-o", &folded]);
    support::expect_code(&converted, 0);
    let whole = std::fs::read(&after).unwrap();
    std::fs::write(&damaged, &whole[..whole.len() / 2]).unwrap();

    let top = |file: &str| asked(&["query", "top", file, "--format", "json", "--limit", "0"]);
    let changes = asked(&["diff", &before, &after, "--format", "json"]);
    let expected = serde_json::json!({
        "before": top(&before),
        "after": top(&after),
        "folded": top(&folded),
        "changed": changes["functions"][0]["name"],
    });
    std::fs::write(path("expected.json"), expected.to_string()).unwrap();
    let elsewhere = server_with_a_name("files.test", &path("elsewhere"));
    walk(&server, "files.mjs", &[&elsewhere.url("/"), &path("")]);
}

#[test]
fn waits_are_told_apart_by_what_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let test = "waits_are_told_apart_by_what_is_waited_for";
    let Some(server) = demo(test, folder.path()) else {
        return;
    };
    let pictures = folder.path().to_str().unwrap();
    walk(&server, "panes.mjs", &["checkout", pictures]);
}

/// The total that a command of the window prints.
fn total_of_command(command: &str) -> i64 {
    let program = format!("{} ", env!("CARGO_BIN_EXE_candela"));
    let here = command.replacen("candela ", &program, 1);
    let output = support::in_clean_environment("sh")
        .args(["-c", &format!("{here} --format json --limit 1")])
        .output()
        .unwrap();
    support::expect_code(&output, 0);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    answer["total"].as_i64().unwrap()
}

#[test]
fn exports_are_of_what_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let test = "exports_are_of_what_is_seen";
    let Some(server) = demo(test, folder.path()) else {
        return;
    };
    let exported = folder.path().join("exported");
    let seen = walk(
        &server,
        "exports.mjs",
        &["checkout", exported.to_str().unwrap()],
    );
    let total = seen["total"].as_i64().unwrap();
    let files = seen["files"].as_object().unwrap();
    assert_eq!(files.len(), 4, "{seen:#}");
    for (format, path) in files {
        let top = asked(&["query", "top", path.as_str().unwrap(), "--format", "json"]);
        assert_eq!(top["total"], total, "{format}");
    }
    assert_eq!(total_of_command(seen["command"].as_str().unwrap()), total);

    let ns = |end: &str| seen["range"][end].as_str().unwrap().parse::<i64>().unwrap() * 1_000_000;
    let range = [ns("from"), ns("to") - ns("from")];
    let read = |format: &str| std::fs::read(files[format].as_str().unwrap()).unwrap();
    let options = candela_formats::ReadOptions::default();
    let (pprof, _) = candela_formats::read_pprof(&read("pprof")[..], &options).unwrap();
    let of = |profile: &candela_model::Profile| {
        let series = &profile.series[0];
        [series.start_ns, series.duration_ns]
    };
    assert_eq!(of(&pprof), range);
    let firefox: Value = serde_json::from_slice(&read("firefox")).unwrap();
    assert_eq!(firefox["meta"]["startTime"], ns("from") as f64 / 1e6);
}

#[test]
fn the_window_works_below_a_path() {
    let folder = tempfile::tempdir().unwrap();
    let Some(demo) = demo("the_window_works_below_a_path", folder.path()) else {
        return;
    };
    // The demo has no settings of its own: a server goes on with its data.
    drop(demo);
    let data_dir = folder.path().join("data");
    let data_dir = data_dir.to_str().unwrap();
    let arguments = ["server", "--listen", "127.0.0.1:0", "--data-dir", data_dir];
    let prefix = [("CANDELA_SERVER__HTTP_PREFIX", "/profiling")];
    let server = Running::try_start(&arguments, &prefix).unwrap();
    let below = server.url("/profiling/");
    let exported = folder.path().to_str().unwrap();
    let seen = walks::run(&server, "e2e/prefix.mjs", &[&below, "gateway", exported]);
    walks::assert_no_problems(&seen);
    let command = seen["command"].as_str().unwrap();
    assert!(command.contains("/profiling "), "{command}");
    assert_eq!(Some(total_of_command(command)), seen["total"].as_i64());
}

#[test]
fn deploys_notes_and_saved_views_can_be_walked() {
    let folder = tempfile::tempdir().unwrap();
    let test = "deploys_notes_and_saved_views_can_be_walked";
    let Some(server) = demo(test, folder.path()) else {
        return;
    };
    let pictures = folder.path().to_str().unwrap();
    let seen = walk(&server, "notes.mjs", &[pictures]);
    assert_eq!(seen["deploys"], 3, "{seen:#}");
}

#[test]
fn the_document_of_the_fleet_is_changed_in_the_window() {
    let folder = tempfile::tempdir().unwrap();
    let test = "the_document_of_the_fleet_is_changed_in_the_window";
    let Some(server) = demo(test, folder.path()) else {
        return;
    };
    walk(&server, "fleet.mjs", &[]);
}

#[test]
fn who_is_asked_signs_in_and_out() {
    let test = "who_is_asked_signs_in_and_out";
    if !can_walk(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("guarded.yaml");
    let accounts = "auth:
  tokens: [{name: ci, token: correct-horse-battery, rights: [read, write]}]
  users: [{name: ann, password: wonderland, rights: [read]}]
";
    std::fs::write(&config, accounts).unwrap();
    let data_dir = folder.path().join("data");
    let server = Running::start(&[
        "server",
        "--config",
        config.to_str().unwrap(),
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        data_dir.to_str().unwrap(),
    ]);
    let pictures = folder.path().to_str().unwrap();
    walk(&server, "sign-in.mjs", &[pictures]);
}

#[test]
fn waiting_cancelled_refused_and_partial_answers_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let test = "waiting_cancelled_refused_and_partial_answers_say_so";
    let Some(server) = demo(test, folder.path()) else {
        return;
    };
    walk(&server, "waiting.mjs", &["checkout"]);
}

#[test]
fn colours_and_motion_are_those_that_readers_prefer() {
    let folder = tempfile::tempdir().unwrap();
    let test = "colours_and_motion_are_those_that_readers_prefer";
    let Some(server) = demo(test, folder.path()) else {
        return;
    };
    walk(&server, "preferences.mjs", &["checkout"]);
}

#[test]
fn pictures_are_those_that_were_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let test = "pictures_are_those_that_were_looked_at";
    let Some(server) = demo_with(test, folder.path(), &["--at", MOMENT_OF_PICTURES]) else {
        return;
    };
    let differing = Path::new(env!("CARGO_TARGET_TMPDIR")).join("goldens");
    println!("what differs is in {}", differing.display());
    let seen = walk(&server, "goldens.mjs", &[differing.to_str().unwrap()]);
    if let Some(reason) = seen["skipped"].as_str() {
        println!("SKIP {test}: {reason}");
    }
}

mod measure {
    use candela_testing::expect_within;

    use super::*;

    /// The budgets of the bench rows U1–U7, ten times as large: a test shares its machine with others.
    #[test]
    fn budgets_of_the_window_hold_with_slack() {
        let folder = tempfile::tempdir().unwrap();
        let Some(server) = demo("budgets_of_the_window_hold_with_slack", folder.path()) else {
            return;
        };
        let url = server.url("/");
        let measure = |options: &[&str]| {
            let options = [&["--url", url.as_str()], options].concat();
            walks::run(&server, "bench/browser.mjs", &options)
        };
        let check = |figures: &Value, pointer: &str, most: f64| {
            let figure = figures.pointer(pointer).and_then(Value::as_f64);
            let figure =
                figure.unwrap_or_else(|| panic!("{pointer} was not measured: {figures:#}"));
            expect_within(pointer, figure, ..=most, "");
        };
        let paint = measure(&["--only", "paint"]);
        check(&paint, "/first_paint_ms", 3_000.0);
        check(&paint, "/first_paint_bytes", 150.0 * 1024.0);
        let engine = measure(&["--nodes", "200000"]);
        check(&engine, "/first_flame_graph_ms", 10_000.0);
        check(&engine, "/move_script_ms/p95", 60.0);
        check(&engine, "/move_frame_ms/p95", 200.0);
        check(&engine, "/hover_ms/p95", 167.0);
        check(&engine, "/hit_ms/p95", 0.5);
        check(&engine, "/search_ms", 1_000.0);
        check(&engine, "/bytes_per_node", 600.0);
        let focus = measure(&["--only", "focus"]);
        check(&focus, "/focus_ms/p95", 3_000.0);
    }
}
