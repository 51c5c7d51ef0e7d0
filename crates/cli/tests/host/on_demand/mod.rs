//! `/profile/cpu` by the requests that Neon's users send, with curl, in a network of its own, where the
//! port that they name is free whatever runs on the host.
#![expect(clippy::print_stdout, reason = "a test that skips says why")]

pub(crate) mod curl;
pub(crate) mod postgres;

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::support;
use crate::support::Running;
use curl::Answer;
use curl::Asking;
use curl::Network;
use postgres::Postgres;

const TOOLS: [&str; 4] = ["unshare", "nsenter", "ip", "curl"];
const URL: &str = "http://localhost:3080/profile/cpu";
const JSON: &str = "Content-Type: application/json";
const IN_PROGRESS: &str = "\"Profiling is currently in progress.\"";
const NOTHING_TO_STOP: &str = "\"Profiling is not in progress, there is nothing to stop.\"";

/// A place for the files of a test; none, with a word, where the tools are not there.
pub(crate) fn place(test: &str, more_tools: &[&str]) -> Option<tempfile::TempDir> {
    let mut tools = TOOLS.iter().chain(more_tools);
    let can_run = support::is_root(test) && tools.all(|tool| support::has_tool(test, tool));
    can_run.then(|| tempfile::tempdir().unwrap())
}

/// `candela up` at its default ports, with curl in its network.
pub(crate) struct Endpoint {
    candela: Running,
    network: Network,
    pub(crate) body: PathBuf,
}

impl Endpoint {
    pub(crate) fn start(folder: &Path) -> Self {
        let data_dir = folder.join("data");
        let arguments = ["up", "--data-dir", data_dir.to_str().unwrap()];
        let candela = Running::start_in_own_network(&arguments);
        Self {
            network: Network::of(&candela),
            candela,
            body: folder.join("profile.pb"),
        }
    }

    /// The same without the capability to signal processes of other users.
    fn start_without_kill(folder: &Path) -> Self {
        let mut setpriv = support::in_clean_environment("setpriv");
        setpriv
            .args(["--inh-caps", "-kill", "--bounding-set", "-kill"])
            .args(["unshare", "--net", "sh", "-c"])
            .args(["ip link set lo up && exec \"$@\"", "sh"])
            .arg(env!("CARGO_BIN_EXE_candela"))
            .args(["up", "--data-dir"])
            .arg(folder.join("data"));
        let candela = Running::launch(&mut setpriv).unwrap();
        Self {
            network: Network::of(&candela),
            candela,
            body: folder.join("profile.pb"),
        }
    }

    /// Asks for a profile, which goes to [`Self::body`].
    pub(crate) fn post(&self, request: &str) -> Asking {
        let arguments = ["-X", "POST", URL, "-H", JSON, "-d", request];
        self.network.start(&self.body, &arguments)
    }

    fn status(&self) -> Answer {
        self.network.ask(&[URL])
    }

    /// Ends the session in progress.
    fn stop(&self, query: &str) -> Answer {
        self.network
            .ask(&["-X", "DELETE", &format!("{URL}{query}")])
    }

    fn wait_for_status(&self, code: u16) {
        support::eventually("the session is in progress, or has ended", || {
            (self.status().code == code).then_some(())
        });
    }

    pub(crate) fn terminate(self) {
        assert_eq!(self.candela.terminate(), Some(0));
    }
}

/// A program with work to do.
fn burner(folder: &Path) -> support::Program {
    let program = support::compile_shares(folder);
    support::Program::start(Command::new(&program).arg("100000"))
}

/// What `go tool pprof` says of a profile.
pub(crate) fn pprof(arguments: &[&str], file: &Path) -> String {
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
pub(crate) fn cumulated_percent(top: &str, function: &str) -> f64 {
    let line = top.lines().find(|line| line.trim_end().ends_with(function));
    let line = line.unwrap_or_else(|| panic!("{function} in {top}"));
    let percent = line.split_whitespace().nth(4).unwrap();
    percent.trim_end_matches('%').parse().unwrap()
}

#[test]
fn postgres_is_profiled_as_neon_does() {
    let test = "postgres_is_profiled_as_neon_does";
    let Some(folder) = place(test, &["go"]) else {
        return;
    };
    let Some(postgres) = Postgres::start(test) else {
        return;
    };
    let endpoint = Endpoint::start(folder.path());
    let file = &endpoint.body;
    let first = endpoint.post(
        r#"{"profiler": {"BccProfile": null}, "sampling_frequency": 99, "timeout_seconds": 2, "archive": false}"#,
    );
    support::eventually("the session is in progress", || {
        let status = endpoint.status();
        (status.code == 200).then(|| assert_eq!(status.body, IN_PROGRESS.as_bytes()))
    });
    let request = r#"{"profiler": {"Perf": null}}"#;
    let second = endpoint
        .network
        .ask(&["-X", "POST", URL, "-H", JSON, "-d", request]);
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
    let idle = endpoint.status();
    assert_eq!((idle.code, idle.body.len()), (204, 0));

    let top = pprof(&["-top", "-cum"], file);
    assert!(cumulated_percent(&top, "PostgresMain") > 0.0, "{top}");
    let raw = pprof(&["-raw"], file);
    for part in [
        "samples/count cpu/nanoseconds",
        "Period: 10101010",
        "Duration: 2",
    ] {
        assert!(raw.contains(part), "{part}: {raw}");
    }
    let tags = pprof(&["-tags"], file);
    let postmaster = format!(" {}\n", postgres.pid());
    assert!(tags.contains("pid"), "{tags}");
    assert!(
        !tags.contains(&postmaster),
        "the postmaster itself is left out: {tags}"
    );

    let archive = endpoint
        .post(r#"{"profiler": {"Perf": null}, "timeout_seconds": 1, "archive": true}"#)
        .wait();
    assert_eq!(archive.code, 200, "{archive:?}");
    assert_eq!(archive.header("content-type"), "application/gzip");
    let disposition = "attachment; filename=\"profile.pb.gz\"";
    assert_eq!(archive.header("content-disposition"), disposition);
    assert!(archive.body.starts_with(&[0x1f, 0x8b]), "it is compressed");
    let top = pprof(&["-top", "-cum"], file);
    assert!(cumulated_percent(&top, "PostgresMain") > 0.0, "{top}");
    endpoint.terminate();
}

#[test]
fn a_session_is_stopped_by_delete() {
    let test = "a_session_is_stopped_by_delete";
    let Some(folder) = place(test, &[]) else {
        return;
    };
    let burner = burner(folder.path());
    let endpoint = Endpoint::start(folder.path());
    let request = format!(
        r#"{{"profiler":{{"BccProfile":null}},"timeout_seconds":60,"target":{{"pid":{}}}}}"#,
        burner.pid()
    );
    let session = || {
        let session = endpoint.post(&request);
        endpoint.wait_for_status(200);
        session
    };

    for _ in 0..2 {
        let idle = endpoint.stop("");
        assert_eq!((idle.code, &*idle.body), (412, NOTHING_TO_STOP.as_bytes()));
        assert_eq!(idle.header("content-type"), "application/json");
    }
    let thrown_away = session();
    let stopped = endpoint.stop("");
    assert_eq!(stopped.code, 200);
    assert_eq!(stopped.body, b"\"Profiling stopped successfully.\"");
    assert_eq!(endpoint.status().code, 204, "it has ended");
    let thrown_away = thrown_away.wait();
    assert_eq!((thrown_away.code, thrown_away.body.len()), (204, 0));
    assert_eq!(endpoint.stop("").code, 412);

    let kept = session();
    support::let_run(burner.pid(), Duration::from_millis(300));
    assert_eq!(endpoint.stop("?keep=true").code, 200);
    let kept = kept.wait();
    assert_eq!(kept.code, 200, "{kept:?}");
    let query = support::run(&["query", "top", endpoint.body.to_str().unwrap()]);
    assert!(support::stdout(&query).contains("burn_fifty"), "{query:?}");

    // Who goes away wants nothing any more, and the end of the process waits for no session.
    drop(session());
    endpoint.wait_for_status(204);
    let last = session();
    endpoint.terminate();
    assert_eq!(last.wait().code, 503);
}

/// A tool that becomes another user's, as by sudo, and an agent that may not signal that one.
#[test]
fn a_stop_that_cannot_be_delivered_is_told() {
    let test = "a_stop_that_cannot_be_delivered_is_told";
    let Some(folder) = place(test, &["setpriv", "install"]) else {
        return;
    };
    let script = folder.path().join("script");
    let told = folder.path().join("pid");
    let text = format!(
        "#!/bin/sh\necho $$ >{}\nexec setpriv --reuid 65534 --clear-groups tail -f /dev/null\n",
        told.display()
    );
    std::fs::write(&script, text).unwrap();
    let tool = folder.path().join("perf");
    // By another process: what this one has written cannot be run while a child of another test holds it.
    let mut install = Command::new("install");
    let installed = install.args(["-m", "755"]).arg(&script).arg(&tool).status();
    assert!(installed.unwrap().success());
    let endpoint = Endpoint::start_without_kill(folder.path());
    let request = format!(
        r#"{{"profiler":{{"Perf":"{}"}},"timeout_seconds":60,"target":{{"all":true}}}}"#,
        tool.display()
    );
    let session = endpoint.post(&request);
    let pid = support::eventually("the tool is another user's", || {
        let pid: u32 = std::fs::read_to_string(&told).ok()?.trim().parse().ok()?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        status.contains("\nUid:\t65534\t").then_some(pid)
    });
    endpoint.wait_for_status(200);
    let stopped = endpoint.stop("");
    assert_eq!(stopped.code, 500, "{stopped:?}");
    let text: String = serde_json::from_slice(&stopped.body).unwrap();
    assert!(text.contains("cannot be told to end"), "{text}");
    assert_eq!(session.wait().code, 204, "its data is thrown away");
    // The session is over, also where its tool goes on.
    assert_eq!(endpoint.stop("").code, 412);
    support::signal(pid, "KILL");
    endpoint.terminate();
}

#[test]
fn what_is_wrong_is_told_by_status_code() {
    let test = "what_is_wrong_is_told_by_status_code";
    let Some(folder) = place(test, &[]) else {
        return;
    };
    let endpoint = Endpoint::start(folder.path());
    let network = &endpoint.network;

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
        let answer = endpoint.post(body).wait();
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
    let idle = support::Program::start(Command::new("tail").args(["-f", "/dev/null"]));
    let request = format!(
        r#"{{"profiler":{{"BccProfile":null}},"timeout_seconds":1,"target":{{"pid":{}}}}}"#,
        idle.pid()
    );
    support::eventually("it waits for what never comes", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", idle.pid())).unwrap();
        stat.contains("(tail) S ").then_some(())
    });
    let empty = endpoint.post(&request).wait();
    assert_eq!(empty.code, 500, "{empty:?}");
    let text: String = serde_json::from_slice(&empty.body).unwrap();
    assert!(text.contains("no samples"), "{text}");
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
        (is_told && messages.contains(&format!("(pid {})", endpoint.candela.pid()))).then_some(())
    });
    assert_eq!(second.terminate(), Some(0));
    endpoint.terminate();
}

#[test]
fn a_token_is_asked_for_where_there_is_one() {
    let test = "a_token_is_asked_for_where_there_is_one";
    let Some(folder) = place(test, &[]) else {
        return;
    };
    let refused = public(folder.path(), "", &[]).unwrap_err();
    assert!(refused.contains("agent.on_demand.token"), "{refused}");

    let candela = public(folder.path(), "sesame", &[]).unwrap();
    let network = Network::of(&candela);
    let url = told_url(&candela, "http");
    let stranger = network.ask(&[&url]);
    assert_eq!(stranger.code, 401);
    assert!(stranger.header("www-authenticate").starts_with("Bearer"));
    let wrong = network.ask(&["-H", "Authorization: Bearer sesam", &url]);
    assert_eq!(wrong.code, 401);
    let right = network.ask(&["-H", "Authorization: Bearer sesame", &url]);
    assert_eq!(right.code, 204);
    let metrics = url.replace("/profile/cpu", "/metrics");
    assert_eq!(network.ask(&[&metrics]).code, 401);
    let told = network.ask(&["-H", "Authorization: Bearer sesame", &metrics]);
    assert_eq!(told.code, 200);
    assert!(told.header("content-type").starts_with("text/plain"));
    let text = String::from_utf8(told.body).unwrap();
    assert!(
        text.contains("\ncandela_agent_rate_hz{setting=\"configured\"} 19\n"),
        "{text}"
    );
    assert_eq!(candela.terminate(), Some(0));
}

#[test]
fn with_a_certificate_the_port_speaks_tls() {
    let test = "with_a_certificate_the_port_speaks_tls";
    let Some(folder) = place(test, &[]) else {
        return;
    };
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (cert_file, key_file) = (path("cert.pem"), path("key.pem"));
    std::fs::write(&cert_file, cert.pem()).unwrap();
    std::fs::write(&key_file, signing_key.serialize_pem()).unwrap();
    let with = |cert_file: &str| {
        let environment = [
            ("CANDELA_AGENT__ON_DEMAND__TLS__CERT_FILE", cert_file),
            ("CANDELA_AGENT__ON_DEMAND__TLS__KEY_FILE", &key_file),
        ];
        public(folder.path(), "sesame", &environment)
    };
    let refused = with(&key_file).unwrap_err();
    assert!(
        refused.contains("agent.on_demand.tls.cert_file"),
        "{refused}"
    );

    let burner = burner(folder.path());
    let candela = with(&cert_file).unwrap();
    let network = Network::of(&candela);
    let url = told_url(&candela, "https").replace("127.0.0.1", "localhost");
    let ask = |arguments: &[&str]| {
        let token = ["-H", "Authorization: Bearer sesame", "--cacert", &cert_file];
        network.ask(&[&token[..], arguments].concat())
    };
    assert_eq!(ask(&[&url]).code, 204);
    let request = format!(
        r#"{{"profiler":{{"BccProfile":null}},"timeout_seconds":1,"target":{{"pid":{}}}}}"#,
        burner.pid()
    );
    // As other programs speak: HTTP/1.1, and what would rather have HTTP/2 takes it, too.
    for version in ["--http1.1", "--http2"] {
        let answer = ask(&[version, "-X", "POST", "-H", JSON, "-d", &request, &url]);
        assert_eq!(answer.code, 200, "{version}: {answer:?}");
        assert!(!answer.body.is_empty(), "{version}");
    }
    let stranger = network.ask(&["--cacert", &cert_file, &url]);
    assert_eq!(stranger.code, 401);
    let plain = network.start(
        &folder.path().join("plain"),
        &[&url.replace("https", "http")],
    );
    assert!(!plain.succeeds(), "nothing is told without TLS");
    assert_eq!(candela.terminate(), Some(0));
}

/// `candela up` that other hosts could ask for profiles.
fn public(folder: &Path, token: &str, more: &[(&str, &str)]) -> Result<Running, String> {
    let environment = [
        ("CANDELA_AGENT__ON_DEMAND__LISTEN", "0.0.0.0:0"),
        ("CANDELA_AGENT__ON_DEMAND__TOKEN", token),
    ];
    let data_dir = folder.to_str().unwrap();
    let arguments = ["up", "--listen", "127.0.0.1:0", "--data-dir", data_dir];
    Running::try_start(&arguments, &[&environment, more].concat())
}

/// Where such a one says that profiles are.
fn told_url(candela: &Running, scheme: &str) -> String {
    let port = support::eventually("the line with the port", || {
        let messages = candela.messages();
        let told = format!("profiles on demand are at {scheme}://0.0.0.0:");
        let (_, rest) = messages.split_once(&told)?;
        Some(rest.split_once('/')?.0.to_owned())
    });
    format!("{scheme}://127.0.0.1:{port}/profile/cpu")
}

#[test]
fn perf_of_the_host_is_run_where_its_path_is_given() {
    let test = "perf_of_the_host_is_run_where_its_path_is_given";
    let Some(folder) = place(test, &["perf"]) else {
        return;
    };
    if !Path::new("/usr/bin/perf").is_file() {
        println!("SKIP {test}: perf is not /usr/bin/perf");
        return;
    }
    let burner = burner(folder.path());
    let endpoint = Endpoint::start(folder.path());
    let request = format!(
        r#"{{"profiler":{{"Perf":"/usr/bin/perf"}},"timeout_seconds":1,"target":{{"pid":{}}}}}"#,
        burner.pid()
    );
    // The second is also for perf to start in, which takes longer than that on a busy host.
    support::eventually("perf samples the program", || {
        let answer = endpoint.post(&request).wait();
        let said = String::from_utf8_lossy(&answer.body);
        let is_too_late = answer.code == 500 && said.contains("no samples");
        assert!(answer.code == 200 || is_too_late, "{said}");
        (!is_too_late).then_some(())
    });
    let top = support::run(&[
        "query",
        "top",
        endpoint.body.to_str().unwrap(),
        "--limit",
        "0",
    ]);
    let top = support::stdout(&top);
    assert!(top.contains("burn_fifty"), "{top}");
    assert!(!top.contains("candela"), "only the target's: {top}");
    endpoint.terminate();
}
