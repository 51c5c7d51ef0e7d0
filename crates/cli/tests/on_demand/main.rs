//! `/profile/cpu` by the requests that Neon's users send, with curl, in a network of its own, where the
//! port that they name is free whatever runs on the host.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![expect(clippy::print_stdout, reason = "a test that skips says why")]

mod curl;
mod postgres;
#[path = "../support/mod.rs"]
mod support;

use std::path::Path;
use std::process::Command;

use curl::Network;
use postgres::Postgres;
use support::Running;

const TOOLS: [&str; 4] = ["unshare", "nsenter", "ip", "curl"];
const URL: &str = "http://localhost:3080/profile/cpu";
const JSON: &str = "Content-Type: application/json";
const IN_PROGRESS: &str = "\"Profiling is currently in progress.\"";
const NOTHING_TO_STOP: &str = "\"Profiling is not in progress, there is nothing to stop.\"";

fn can_run(test: &str) -> bool {
    support::is_root(test) && TOOLS.iter().all(|tool| support::has_tool(test, tool))
}

/// `candela up` at its default ports.
fn up(folder: &Path) -> Running {
    let data_dir = folder.join("data");
    Running::start_in_own_network(&["up", "--data-dir", data_dir.to_str().unwrap()])
}

/// What `go tool pprof` says of a profile.
fn pprof(arguments: &[&str], file: &Path) -> String {
    let output = Command::new("go")
        .args(["tool", "pprof", "-symbolize=none"])
        .args(arguments)
        .arg(file)
        .output()
        .unwrap();
    support::expect_code(&output, 0);
    support::stdout(&output)
}

/// The words that follow a function's name in a table: flat, flat%, sum%, cum, cum%.
fn cumulated_percent(top: &str, function: &str) -> f64 {
    let line = top.lines().find(|line| line.trim_end().ends_with(function));
    let line = line.unwrap_or_else(|| panic!("{function} in {top}"));
    let percent = line.split_whitespace().nth(4).unwrap();
    percent.trim_end_matches('%').parse().unwrap()
}

#[test]
fn postgres_is_profiled_as_neon_does() {
    let test = "postgres_is_profiled_as_neon_does";
    if !can_run(test) || !support::has_tool(test, "go") {
        return;
    }
    let Some(postgres) = Postgres::start(test) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let candela = up(folder.path());
    let network = Network::of(&candela);

    let file = folder.path().join("profile.pb");
    let first = network.start(
        &file,
        &[
            "-X",
            "POST",
            URL,
            "-H",
            JSON,
            "-d",
            r#"{"profiler": {"BccProfile": null}, "sampling_frequency": 99, "timeout_seconds": 5, "archive": false}"#,
        ],
    );
    support::eventually("the session is in progress", || {
        let status = network.ask(&[URL]);
        (status.code == 200).then(|| assert_eq!(status.body, IN_PROGRESS.as_bytes()))
    });
    let second = network.ask(&[
        "-X",
        "POST",
        URL,
        "-H",
        JSON,
        "-d",
        r#"{"profiler": {"Perf": null}}"#,
    ]);
    assert_eq!(second.code, 409);
    assert_eq!(second.body, b"\"Profiling is already in progress.\"");
    let first = first.wait();
    assert_eq!(first.code, 200, "{first:?}");
    assert_eq!(first.header("content-type"), "application/octet-stream");
    let disposition = "attachment; filename=\"profile.pb\"";
    assert_eq!(first.header("content-disposition"), disposition);
    assert!(
        !first.body.starts_with(&[0x1f, 0x8b]),
        "it is not compressed"
    );
    let idle = network.ask(&[URL]);
    assert_eq!((idle.code, idle.body.len()), (204, 0));

    let top = pprof(&["-top", "-cum"], &file);
    assert!(cumulated_percent(&top, "PostgresMain") > 80.0, "{top}");
    let raw = pprof(&["-raw"], &file);
    for part in [
        "samples/count cpu/nanoseconds",
        "Period: 10101010",
        "Duration: 5",
    ] {
        assert!(raw.contains(part), "{part}: {raw}");
    }
    let tags = pprof(&["-tags"], &file);
    let postmaster = format!(" {}\n", postgres.pid());
    assert!(tags.contains("pid"), "{tags}");
    assert!(
        !tags.contains(&postmaster),
        "the postmaster itself is left out: {tags}"
    );

    let file = folder.path().join("profile.pb.gz");
    let archive = network.start(
        &file,
        &[
            "-X",
            "POST",
            URL,
            "-H",
            JSON,
            "-d",
            r#"{"profiler": {"Perf": null}, "timeout_seconds": 1, "archive": true}"#,
        ],
    );
    let archive = archive.wait();
    assert_eq!(archive.code, 200, "{archive:?}");
    assert_eq!(archive.header("content-type"), "application/gzip");
    let disposition = "attachment; filename=\"profile.pb.gz\"";
    assert_eq!(archive.header("content-disposition"), disposition);
    assert!(archive.body.starts_with(&[0x1f, 0x8b]), "it is compressed");
    let top = pprof(&["-top", "-cum"], &file);
    assert!(cumulated_percent(&top, "PostgresMain") > 80.0, "{top}");
    assert_eq!(candela.terminate(), Some(0));
}

/// User time in ticks: the fourteenth field of proc_pid_stat(5).
fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    fields.split(' ').nth(11).unwrap().parse().unwrap()
}

#[test]
fn a_session_is_stopped_by_delete() {
    let test = "a_session_is_stopped_by_delete";
    if !can_run(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = support::compile_shares(folder.path());
    let burner = support::Program::start(Command::new(&program).arg("100000"));
    let candela = up(folder.path());
    let network = Network::of(&candela);
    let stop = |query: &str| network.ask(&["-X", "DELETE", &format!("{URL}{query}")]);
    let request = format!(
        r#"{{"profiler":{{"BccProfile":null}},"timeout_seconds":60,"target":{{"pid":{}}}}}"#,
        burner.pid()
    );
    let file = folder.path().join("profile.pb");
    let session = || {
        let session = network.start(&file, &["-X", "POST", URL, "-H", JSON, "-d", &request]);
        support::eventually("the session is in progress", || {
            (network.ask(&[URL]).code == 200).then_some(())
        });
        session
    };

    for _ in 0..2 {
        let idle = stop("");
        assert_eq!((idle.code, &*idle.body), (412, NOTHING_TO_STOP.as_bytes()));
        assert_eq!(idle.header("content-type"), "application/json");
    }
    let thrown_away = session();
    let stopped = stop("");
    assert_eq!(stopped.code, 200);
    assert_eq!(stopped.body, b"\"Profiling stopped successfully.\"");
    assert_eq!(network.ask(&[URL]).code, 204, "it has ended");
    let thrown_away = thrown_away.wait();
    assert_eq!((thrown_away.code, thrown_away.body.len()), (204, 0));
    assert_eq!(stop("").code, 412);

    let kept = session();
    let before = cpu_ticks(burner.pid());
    support::eventually("all of the program's functions have run", || {
        (cpu_ticks(burner.pid()) >= before + 100).then_some(())
    });
    assert_eq!(stop("?keep=true").code, 200);
    let kept = kept.wait();
    assert_eq!(kept.code, 200, "{kept:?}");
    let query = support::run(&["query", "top", file.to_str().unwrap()]);
    assert!(support::stdout(&query).contains("burn_fifty"), "{query:?}");

    // Who goes away wants nothing any more, and the end of the process waits for no session.
    drop(session());
    support::eventually("the session has ended", || {
        (network.ask(&[URL]).code == 204).then_some(())
    });
    let last = session();
    assert_eq!(candela.terminate(), Some(0));
    assert_eq!(last.wait().code, 503);
}

#[test]
fn what_is_wrong_is_told_by_status_code() {
    let test = "what_is_wrong_is_told_by_status_code";
    if !can_run(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let candela = up(folder.path());
    let network = Network::of(&candela);
    let post = |body: &str| network.ask(&["-X", "POST", URL, "-H", JSON, "-d", body]);

    for (body, code) in [
        (
            r#"{"profiler":{"BccProfile":null},"sampling_frequency":1001}"#,
            422,
        ),
        (
            r#"{"profiler":{"BccProfile":null},"timeout_seconds":61}"#,
            422,
        ),
        (r#"{"profiler":{"BccProfile":null},"archive":1}"#, 422),
        (r#"{"sampling_frequency":99}"#, 422),
        (r#"{"profiler":"#, 400),
        // No process has this number: it is the largest that Linux gives, and more.
        (
            r#"{"profiler":{"Perf":null},"target":{"pid":4194304}}"#,
            500,
        ),
        (
            r#"{"profiler":{"Perf":"/nonexistent/perf"},"target":{"all":true}}"#,
            500,
        ),
        (
            r#"{"profiler":{"BccProfile":"/bin/sh"},"target":{"all":true}}"#,
            500,
        ),
    ] {
        let answer = post(body);
        assert_eq!(answer.code, code, "{body}: {answer:?}");
        assert_eq!(answer.header("content-type"), "application/json");
        let text: String = serde_json::from_slice(&answer.body).unwrap();
        if code == 500 {
            assert!(
                text.starts_with("Failed to generate pprof data: "),
                "{text}"
            );
        }
    }
    let form = network.ask(&["-X", "POST", URL, "-d", r#"{"profiler":{"Perf":null}}"#]);
    assert_eq!(form.code, 415);
    let elsewhere = network.ask(&["http://localhost:3080/profile/heap"]);
    assert_eq!((elsewhere.code, elsewhere.body.len()), (404, 0));
    let wrong = network.ask(&["-X", "PUT", URL]);
    assert_eq!((wrong.code, wrong.body.len()), (405, 0));

    let given = network.ask(&["-H", "x-request-id: 6f1a", URL]);
    assert_eq!(given.header("x-request-id"), "6f1a");
    assert_eq!(network.ask(&[URL]).header("x-request-id").len(), 32);
    let page = network.ask(&["-X", "DELETE", "-H", "Origin: http://evil.example", URL]);
    assert_eq!(page.code, 403);
    let rebound = network.ask(&["-H", "Host: evil.example", URL]);
    assert_eq!(rebound.code, 403);

    let second =
        network.run_candela(&["--data-dir", folder.path().join("second").to_str().unwrap()]);
    support::eventually("the second one goes on without the port", || {
        let messages = second.messages();
        let is_told = messages.contains("going on without profiles on demand");
        (is_told && messages.contains(&format!("(pid {})", candela.pid()))).then_some(())
    });
    assert_eq!(second.terminate(), Some(0));
    assert_eq!(candela.terminate(), Some(0));
}

#[test]
fn a_token_is_asked_for_where_there_is_one() {
    let test = "a_token_is_asked_for_where_there_is_one";
    if !can_run(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().to_str().unwrap();
    let public = |token: &str| {
        let environment = [
            ("CANDELA_AGENT__ON_DEMAND__LISTEN", "0.0.0.0:0"),
            ("CANDELA_AGENT__ON_DEMAND__TOKEN", token),
        ];
        let arguments = ["up", "--listen", "127.0.0.1:0", "--data-dir", data_dir];
        Running::try_start(&arguments, &environment)
    };
    let refused = public("").unwrap_err();
    assert!(refused.contains("agent.on_demand.token"), "{refused}");

    let candela = public("sesame").unwrap();
    let network = Network::of(&candela);
    let port = support::eventually("the line with the port", || {
        let messages = candela.messages();
        let (_, rest) = messages.split_once("profiles on demand are at http://0.0.0.0:")?;
        Some(rest.split_once('/')?.0.to_owned())
    });
    let url = format!("http://127.0.0.1:{port}/profile/cpu");
    let stranger = network.ask(&[&url]);
    assert_eq!(stranger.code, 401);
    assert!(stranger.header("www-authenticate").starts_with("Bearer"));
    let wrong = network.ask(&["-H", "Authorization: Bearer sesam", &url]);
    assert_eq!(wrong.code, 401);
    let right = network.ask(&["-H", "Authorization: Bearer sesame", &url]);
    assert_eq!(right.code, 204);
    assert_eq!(candela.terminate(), Some(0));
}

#[test]
fn perf_of_the_host_is_run_where_its_path_is_given() {
    let test = "perf_of_the_host_is_run_where_its_path_is_given";
    if !can_run(test) || !support::has_tool(test, "perf") {
        return;
    }
    if !Path::new("/usr/bin/perf").is_file() {
        println!("SKIP {test}: perf is not /usr/bin/perf");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = support::compile_shares(folder.path());
    let burner = support::Program::start(Command::new(&program).arg("100000"));
    let candela = up(folder.path());
    let network = Network::of(&candela);
    let file = folder.path().join("profile.pb");
    let request = format!(
        r#"{{"profiler":{{"Perf":"/usr/bin/perf"}},"timeout_seconds":2,"target":{{"pid":{}}}}}"#,
        burner.pid()
    );
    let answer = network.start(&file, &["-X", "POST", URL, "-H", JSON, "-d", &request]);
    let answer = answer.wait();
    assert_eq!(
        answer.code,
        200,
        "{}",
        String::from_utf8_lossy(&answer.body)
    );
    let top = support::run(&["query", "top", file.to_str().unwrap(), "--limit", "0"]);
    let top = support::stdout(&top);
    assert!(top.contains("burn_fifty"), "{top}");
    assert!(!top.contains("candela"), "only the target's: {top}");
    assert_eq!(candela.terminate(), Some(0));
}
