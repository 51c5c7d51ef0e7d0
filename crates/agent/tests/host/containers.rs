//! A process in a container's cgroup, and a server of the test that answers as the container's runtime does,
//! with a recorded answer of a Docker Engine.

use std::fs::File;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc::Receiver;
use std::time::Duration;
use std::time::Instant;

use crate::support;
use crate::support::PATIENCE;
use candela_agent::AgentHandle;
use candela_agent::AgentOptions;
use candela_agent::AgentTargets;
use candela_agent::ContainerSocket;
use candela_agent::Kind;
use candela_agent::SampleFilters;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_testing::expect_within;
use candela_testing::more_than;
use tempfile::TempDir;

/// The container of the recorded answer.
const ID: &str = "55cd8b1eecf8d84a28c0c1898481cad0aff4fe42669cf91c762e8212e3083fab";

/// A busy program in the cgroup of a container; both go with the test.
struct Container {
    child: Child,
    group: PathBuf,
}

impl Container {
    /// `None` where no cgroup can be made.
    fn start(directory: &Path) -> Option<Self> {
        let group = make_group()?;
        let program = directory.join("busy");
        let flags = ["-O2", "-o"].map(Into::into);
        let paths = [program.clone(), support::source("shares.c")];
        support::run("gcc", flags.into_iter().chain(paths));
        // It is in the group before it is the program.
        let script = r#"echo $$ >"$0/cgroup.procs" && exec "$1" 600 >/dev/null"#;
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(&group).arg(program);
        let child = command.stdout(Stdio::null()).spawn().expect("sh is there");
        Some(Self { child, group })
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        self.child.kill().expect("it is still running");
        self.child.wait().expect("it is our child");
        std::fs::remove_dir(&self.group).expect("nobody is in it any more");
        // Another test's container may be in the parent.
        let _ = std::fs::remove_dir(self.group.parent().expect("we made it"));
    }
}

/// A cgroup as Docker makes them, in any hierarchy that tells of containers.
fn make_group() -> Option<PathBuf> {
    let roots = [
        "/sys/fs/cgroup/unified",
        "/sys/fs/cgroup",
        "/sys/fs/cgroup/systemd",
    ];
    let mut roots = roots.iter().map(Path::new);
    let name = format!("docker-test-{}", std::process::id());
    let group = roots.find_map(|root| {
        std::fs::metadata(root.join("cgroup.procs")).ok()?;
        let group = root.join(&name).join(ID);
        std::fs::create_dir_all(&group).ok()?;
        Some(group)
    });
    if group.is_none() {
        support::skipped("no cgroup can be made here");
    }
    group
}

/// A socket at which somebody listens.
struct Runtime {
    path: PathBuf,
    /// The paths that were asked for.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Runtime {
    fn start(directory: &Path, answer: fn(&mut UnixStream, &str)) -> Self {
        let path = directory.join("docker.sock");
        let listener = UnixListener::bind(&path).expect("a socket");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        // Ends with the test's process.
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            for mut stream in listener.incoming().map_while(Result::ok) {
                let path = path_of(&stream);
                log.lock()
                    .expect("no panic while locked")
                    .push(path.clone());
                answer(&mut stream, &path);
                kept.push(stream);
            }
        });
        Self { path, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no panic while locked").clone()
    }
}

fn path_of(stream: &UnixStream) -> String {
    let stream = stream.try_clone().expect("a socket");
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let path = head.first().and_then(|line| line.split(' ').nth(1));
    path.unwrap_or_default().to_owned()
}

/// As Docker does: in chunks, because the answer is long.
fn answer_as_docker(stream: &mut UnixStream, path: &str) {
    let (status, body) = match path == format!("/containers/{ID}/json") {
        true => ("200 OK", include_str!("../recordings/docker-inspect.json")),
        false => ("404 Not Found", r#"{"message":"No such container"}"#),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nApi-Version: 1.41\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    let mut message = head.into_bytes();
    for chunk in body.as_bytes().chunks(1000) {
        message.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
        message.extend(chunk);
        message.extend(b"\r\n");
    }
    message.extend(b"0\r\n\r\n");
    stream.write_all(&message).expect("the agent reads it");
}

/// A container and its runtime, in a test that has its turn.
struct Scene {
    container: Container,
    runtime: Runtime,
    _directory: TempDir,
    _turn: File,
}

impl Scene {
    /// `None` where there can be none.
    fn start(answer: fn(&mut UnixStream, &str)) -> Option<Self> {
        if support::cannot_sample() || support::lacks("gcc") {
            return None;
        }
        let turn = support::turn();
        let directory = tempfile::tempdir().expect("a temporary directory");
        Some(Self {
            container: Container::start(directory.path())?,
            runtime: Runtime::start(directory.path(), answer),
            _directory: directory,
            _turn: turn,
        })
    }

    fn start_agent(&self, filters: SampleFilters) -> (AgentHandle, Receiver<Profile>) {
        support::start_agent(AgentOptions {
            rate_hz: 99,
            // Two sources, which both name processes.
            kinds: [Kind::Cpu, Kind::Alloc].into(),
            window: Duration::from_secs(1),
            first_window: Duration::from_secs(1),
            // Another container of the host would be asked for, too.
            targets: AgentTargets::Pids(vec![self.container.child.id()]),
            container_sockets: vec![ContainerSocket::Docker(self.runtime.path.clone())],
            filters,
            ..AgentOptions::default()
        })
    }
}

/// How many threads of the test ask container runtimes.
fn asking_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("our own threads");
    let names = tasks
        .flatten()
        .map(|task| std::fs::read_to_string(task.path().join("comm")));
    let names = names.map_while(Result::ok);
    names.filter(|name| name == "candela-places\n").count()
}

/// The next series of the container.
fn next_series(profiles: &Receiver<Profile>) -> ProfileSeries {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let profile = profiles.recv_timeout(left).expect("a profile in time");
        let mut series = profile.series.into_iter();
        let is_of_container = |it: &ProfileSeries| it.labels.get("container_id") == Some(ID);
        if let Some(series) = series.find(is_of_container) {
            return series;
        }
    }
}

#[test]
fn containers_have_the_names_that_their_runtime_tells() {
    let Some(scene) = Scene::start(answer_as_docker) else {
        return;
    };
    let (agent, profiles) = scene.start_agent(SampleFilters::default());
    // The first profile has it already.
    for _ in 0..2 {
        let labels = next_series(&profiles).labels;
        assert_eq!(labels.get("container"), Some("complex_worker_1"));
        assert_eq!(labels.get("service_name"), Some("complex_worker_1"));
        assert_eq!(labels.get("container.image.name"), Some("complex_worker"));
        assert_eq!(labels.get("process_executable_name"), Some("busy"));
    }
    assert_eq!(
        scene.runtime.asked(),
        [format!("/containers/{ID}/json")],
        "asked once"
    );
    assert_eq!(asking_threads(), 1, "of all sources");
    let status = agent.stop().expect("it stops");
    assert_eq!(status.drops["container_unnamed"], 0);

    // A rule about what only the runtime knows.
    let filters = SampleFilters {
        exclude: vec![r#"{container="complex_worker_1"}"#.parse().expect("sound")],
        ..SampleFilters::default()
    };
    let (agent, profiles) = scene.start_agent(filters);
    let deadline = Instant::now() + PATIENCE;
    while agent.status().drops["excluded_by_rule"] < 20 {
        assert!(Instant::now() < deadline, "{:?}", agent.status().drops);
        if let Ok(profile) = profiles.recv_timeout(Duration::from_millis(100)) {
            let mut series = profile.series.iter();
            assert!(series.all(|it| it.labels.get("container_id") != Some(ID)));
        }
    }
    agent.stop().expect("it stops");
}

#[test]
fn a_runtime_that_does_not_answer_delays_nothing() {
    check_silent_runtime(3, 0);
}

/// Takes so many windows, which must have more than so many samples together.
pub(crate) fn check_silent_runtime(windows: usize, least: i64) {
    let Some(scene) = Scene::start(|_, _| {}) else {
        return;
    };
    let (agent, profiles) = scene.start_agent(SampleFilters::default());
    let mut samples = 0;
    for _ in 0..windows {
        let series = next_series(&profiles);
        assert_eq!(series.labels.get("container"), None);
        assert_eq!(series.labels.get("service_name"), Some("busy"));
        samples += series.total() / series.period;
    }
    let what = format!("samples in {windows} windows");
    expect_within(&what, samples as f64, more_than(least as f64), "");
    assert_eq!(
        scene.runtime.asked().len(),
        1,
        "it is left alone for a while"
    );
    let status = agent.stop().expect("it stops");
    assert_eq!(status.drops["container_unnamed"], 1);
    // It never waits, so that no window waits for it.
    assert_eq!(status.drops["symbolizer_behind"], 0);
}
