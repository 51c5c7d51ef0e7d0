//! Starting the real program, asking it over HTTP, and waiting for what must become true.

#![expect(clippy::print_stdout, reason = "a test that skips says why")]

pub(crate) mod walks;

use std::io::BufRead;
use std::io::BufReader;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;
use std::time::Instant;

/// How long anything that must become true may take before the test gives up. Long, because two
/// cores may be busy with the rest of the suite; nothing waits this long unless it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How long it may take until a program says where it is: a demo makes up a day before it does.
const START: Duration = Duration::from_secs(300);

/// What stands before the address of profiles on demand.
const ON_DEMAND: &str = "profiles on demand are at ";

/// A server where nobody is: only root may listen there, and nobody does.
pub(crate) const NOBODY: &str = "http://127.0.0.1:1";

/// A pid that no process has: the kernel gives smaller ones only.
pub(crate) const NO_PID: &str = "4194304";

/// A `candela` that runs until the value is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    url: String,
    messages: Arc<Mutex<String>>,
}

/// A program that runs until the value is dropped.
pub(crate) struct Program(Child);

/// The program under test.
pub(crate) fn candela() -> Command {
    in_clean_environment(env!("CARGO_BIN_EXE_candela"))
}

/// A program that starts it, or asks it.
pub(crate) fn in_clean_environment(program: &str) -> Command {
    let mut command = Command::new(program);
    // Neither the environment nor a file of the person who runs the tests may decide them.
    command.env_clear();
    for name in ["PATH", "HOME", "TMPDIR"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.stdin(Stdio::null());
    command
}

/// A line of the shell on a terminal of its own, whose code is the command's.
pub(crate) fn on_terminal(line: &str) -> Command {
    let mut script = in_clean_environment("script");
    script
        .args([
            "--quiet",
            "--flush",
            "--return",
            "--command",
            line,
            "/dev/null",
        ])
        .env("SHELL", "/bin/sh");
    script
}

/// Runs it to its end.
pub(crate) fn run(arguments: &[&str]) -> Output {
    candela().args(arguments).output().expect("candela starts")
}

/// The program ended with this code; its messages say why it did not.
#[track_caller]
pub(crate) fn expect_code(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{}", stderr(output));
}

/// Standard output as text.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Standard error as text.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether BPF can be expected to work. Prints why a test skips otherwise.
pub(crate) fn is_root(test: &str) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let is_root = status
        .lines()
        .any(|line| line.starts_with("Uid:") && line.split_whitespace().nth(2) == Some("0"));
    if !is_root {
        println!("SKIP {test}: needs root for BPF");
    }
    is_root
}

/// Whether a tool is installed. Prints why a test skips otherwise.
pub(crate) fn has_tool(test: &str, tool: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).any(|folder| folder.join(tool).is_file());
    if !found {
        println!("SKIP {test}: {tool} is not installed");
    }
    found
}

/// The first `Some` of `attempt`, tried again and again until [`PATIENCE`] is over.
pub(crate) fn eventually<T>(what: &str, attempt: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, what, attempt)
}

/// The same with another bound.
pub(crate) fn within<T>(bound: Duration, what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = attempt() {
            return value;
        }
        assert!(start.elapsed() < bound, "{what}: not within {bound:?}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// The first `Ok` of `attempt`, as [`eventually`]; the last error is in the message of a failure.
pub(crate) fn eventually_ok<T>(what: &str, mut attempt: impl FnMut() -> Result<T, String>) -> T {
    let start = Instant::now();
    loop {
        let error = match attempt() {
            Ok(value) => return value,
            Err(error) => error,
        };
        assert!(
            start.elapsed() < PATIENCE,
            "{what}: not within {PATIENCE:?}: {error}"
        );
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// Body and status of a GET request.
pub(crate) fn get(url: &str) -> (u16, Vec<u8>) {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(PATIENCE))
        .build()
        .into();
    let mut response = agent
        .get(url)
        .call()
        .unwrap_or_else(|error| panic!("{url}: {error}"));
    let status = response.status().as_u16();
    let body = response
        .body_mut()
        .with_config()
        .limit(1 << 30)
        .read_to_vec();
    (
        status,
        body.unwrap_or_else(|error| panic!("{url}: {error}")),
    )
}

/// The same; none when the server is gone.
pub(crate) fn try_get(url: &str) -> Option<(u16, Vec<u8>)> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(PATIENCE))
        .build()
        .into();
    let mut response = agent.get(url).call().ok()?;
    let status = response.status().as_u16();
    let body = response.body_mut().read_to_vec().ok()?;
    Some((status, body))
}

/// The JSON answer of a GET request that must succeed.
pub(crate) fn get_json(url: &str) -> serde_json::Value {
    let (status, body) = get(url);
    assert_eq!(status, 200, "{url}: {}", String::from_utf8_lossy(&body));
    serde_json::from_slice(&body).unwrap_or_else(|error| panic!("{url}: {error}"))
}

/// Status and body of a POST request; none when the server is gone.
pub(crate) fn try_post(url: &str, body: &[u8]) -> Option<(u16, Vec<u8>)> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(PATIENCE))
        .build()
        .into();
    let mut response = agent.post(url).send(body).ok()?;
    let status = response.status().as_u16();
    let body = response.body_mut().read_to_vec().ok()?;
    Some((status, body))
}

/// Compiles the program whose three functions burn 50, 30 and 20 % of its time below a recursion of
/// depth 60, without frame pointers. Its argument is how many seconds of CPU time it runs.
pub(crate) fn compile_shares(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agent/tests/programs/shares.c");
    let program = folder.join("shares");
    let status = Command::new("gcc")
        .args(["-O2", "-g", "-fomit-frame-pointer", "-o"])
        .arg(&program)
        .arg(&source)
        .status()
        .expect("gcc starts");
    assert!(status.success(), "gcc compiles {}", source.display());
    program
}

/// How far a share among so many samples may be from the truth: five standard errors, which chance passes once in two
/// million. Three, which it passes once in 370, are for `measure`.
pub(crate) fn tolerance(share: f64, samples: f64) -> f64 {
    5.0 * (share * (1.0 - share) / samples).sqrt()
}

/// Compiles a test program of the agent's, one or several files of C.
pub(crate) fn compile_of_agent(
    folder: &Path,
    name: &str,
    files: &[&str],
    flags: &[&str],
) -> PathBuf {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agent/tests/programs");
    let program = folder.join(name);
    let status = Command::new("gcc")
        .args(["-O2", "-g", "-fomit-frame-pointer", "-pthread", "-o"])
        .arg(&program)
        .args(files.iter().map(|file| programs.join(file)))
        .args(flags)
        .status()
        .expect("gcc starts");
    assert!(status.success(), "gcc compiles {files:?}");
    program
}

/// A server, and an agent that sends it what runs and what waits on this host, over OTLP.
pub(crate) struct Pair {
    pub(crate) server: Running,
    agent: Program,
}

/// The ports at which a process of ours listens for TCP over IPv4: for programs that take port 0 and do not say which
/// one they got.
pub(crate) fn listening_ports(pid: u32) -> Vec<u16> {
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("our own process");
    let links = descriptors.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    let sockets: Vec<String> = links
        .filter_map(|link| {
            let inode = link.to_str()?.strip_prefix("socket:[")?;
            Some(inode.strip_suffix(']')?.to_owned())
        })
        .collect();
    let table = std::fs::read_to_string(format!("/proc/{pid}/net/tcp")).expect("our own process");
    // `SLOT: ADDRESS:PORT REMOTE:PORT STATE …`, with the inode in the tenth column (proc_pid_net(5)).
    let ports = table.lines().skip(1).filter_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let is_listening = columns.get(3) == Some(&"0A");
        let is_its = sockets
            .iter()
            .any(|inode| columns.get(9) == Some(&&**inode));
        let (_, port) = columns.get(1)?.split_once(':')?;
        let port = u16::from_str_radix(port, 16).ok()?;
        (is_listening && is_its).then_some(port)
    });
    ports.collect()
}

/// The address of HTTP that stands behind these words.
fn address_behind(messages: &str, words: &str) -> Option<String> {
    let position = messages.find(&format!("{words}http"))?;
    let rest = &messages[position + words.len()..];
    Some(rest.split_whitespace().next()?.to_owned())
}

impl Running {
    /// Starts `candela` with these arguments and waits until it says where it is.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::try_start(arguments, &[])
            .unwrap_or_else(|messages| panic!("candela {arguments:?} ended: {messages}"))
    }

    /// The same with environment variables; what it wrote to standard error when it ends before.
    pub(crate) fn try_start(
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Result<Self, String> {
        let mut command = candela();
        command
            .args(arguments)
            // Tests push as fast as they can, which no tenant may by default.
            .env("CANDELA_SERVER__LIMITS__INGEST_RATE", "0")
            .env("CANDELA_SERVER__OTLP_GRPC_LISTEN", "127.0.0.1:0")
            .env("CANDELA_SERVER__OTLP_HTTP_LISTEN", "127.0.0.1:0")
            .env("CANDELA_AGENT__ON_DEMAND__LISTEN", "127.0.0.1:0")
            .envs(environment.iter().copied());
        Self::launch(&mut command)
    }

    /// Starts `candela` at its default ports in a network of its own, where they are free.
    pub(crate) fn start_in_own_network(arguments: &[&str]) -> Self {
        let mut unshare = in_clean_environment("unshare");
        unshare
            .args([
                "--net",
                "sh",
                "-c",
                "ip link set lo up && exec \"$@\"",
                "sh",
            ])
            .arg(env!("CARGO_BIN_EXE_candela"))
            .args(arguments);
        Self::launch(&mut unshare)
            .unwrap_or_else(|messages| panic!("candela {arguments:?} ended: {messages}"))
    }

    /// Starts a command that is or becomes `candela`, and waits until it says where it is.
    pub(crate) fn launch(command: &mut Command) -> Result<Self, String> {
        Self::launch_saying(command, "candela is at ")
    }

    /// Starts a command that becomes `candela agent`, and waits until it says where profiles on demand are.
    pub(crate) fn launch_agent(command: &mut Command) -> Result<Self, String> {
        Self::launch_saying(command, ON_DEMAND)
    }

    fn launch_saying(command: &mut Command, words: &str) -> Result<Self, String> {
        let mut child = command
            .stderr(Stdio::piped())
            .spawn()
            .expect("candela starts");
        let stderr = child.stderr.take().expect("piped");
        let messages = Arc::new(Mutex::new(String::new()));
        let sink = Arc::clone(&messages);
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut text = sink.lock().expect("no panic while locked");
                text.push_str(&line);
                text.push('\n');
            }
        });
        let url = within(START, "candela says where it is", || {
            let text = messages.lock().expect("no panic while locked").clone();
            if let Some(address) = address_behind(&text, words) {
                return Some(Some(address));
            }
            let has_ended = child.try_wait().expect("a child").is_some();
            has_ended.then_some(None)
        });
        let Some(url) = url else {
            // What it wrote last may have come after the look at it.
            reader.join().expect("no panic");
            return Err(messages.lock().expect("no panic while locked").clone());
        };
        Ok(Self {
            child,
            url,
            messages,
        })
    }

    /// `127.0.0.1:PORT`, where profiles on demand are, once it has said so.
    pub(crate) fn on_demand_address(&self) -> Option<String> {
        let url = address_behind(&self.messages(), ON_DEMAND)?;
        let (_, rest) = url.split_once("://")?;
        Some(rest.split('/').next()?.to_owned())
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_some()
    }

    /// `http://127.0.0.1:PORT`, with TLS `https://`, and a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// All that was written to standard error so far.
    pub(crate) fn messages(&self) -> String {
        self.messages.lock().expect("no panic while locked").clone()
    }

    /// Sends SIGTERM and waits for the end; the exit code.
    pub(crate) fn terminate(self) -> Option<i32> {
        signal(self.child.id(), "TERM");
        self.wait()
    }

    /// Waits for the end after a signal; the exit code.
    pub(crate) fn wait(mut self) -> Option<i32> {
        eventually("candela ends after the signal", || {
            self.child.try_wait().expect("a child")
        })
        .code()
    }

    /// Sends SIGKILL and waits for the end.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("a child");
        self.child.wait().expect("a child");
    }
}

impl Pair {
    /// Starts both, and waits until the server has something of each kind.
    pub(crate) fn start(folder: &Path) -> Self {
        let path = |name: &str| folder.join(name).display().to_string();
        let arguments = [
            "server",
            "--listen",
            "127.0.0.1:0",
            "--data-dir",
            &path("data"),
        ];
        let server = Running::start(&arguments);
        let mut agent = candela();
        agent
            .args([
                "agent",
                "--server",
                &server.url(""),
                "--data-dir",
                &path("agent"),
            ])
            .env("CANDELA_AGENT__KINDS", "cpu,off-cpu")
            .env("CANDELA_AGENT__RATE", "499")
            .env("CANDELA_AGENT__INTERVAL", "1s");
        let agent = Program::start(&mut agent);
        eventually("the server has wall time, which needs both kinds", || {
            let types = get_json(&server.url("/api/v1/types"));
            types.to_string().contains("wall:wall:").then_some(())
        });
        Self { server, agent }
    }

    /// Ends the agent, which sends all that it has.
    pub(crate) fn end_agent(&self) {
        signal(self.agent.pid(), "TERM");
        eventually("the agent ends", || {
            is_zombie(self.agent.pid()).then_some(())
        });
    }
}

impl Program {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(
            command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .expect("program starts"),
        )
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a process has used so much more CPU time: what it does again and again has been done by then, however
/// busy the host is.
pub(crate) fn let_run(pid: u32, time: Duration) {
    let ticks = u64::try_from(time.as_millis()).expect("short") / MILLISECONDS_OF_TICK;
    let end = cpu_ticks(pid) + ticks;
    eventually("the program gets CPU time", || {
        (cpu_ticks(pid) >= end).then_some(())
    });
}

/// The unit of times in `/proc`, on every Linux that we run on.
const MILLISECONDS_OF_TICK: u64 = 10;

/// User time in ticks: the fourteenth field of proc_pid_stat(5).
fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let (_, fields) = stat.rsplit_once(") ").expect("a name in parentheses");
    let ticks = fields.split(' ').nth(11).expect("more than twelve fields");
    ticks.parse().expect("a number")
}

/// Whether a child of ours has ended and was not waited for yet.
pub(crate) fn is_zombie(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ")
        .next()
        .is_some_and(|rest| rest.starts_with('Z'))
}

/// Sends a signal by name.
pub(crate) fn signal(pid: u32, name: &str) {
    let status = Command::new("kill")
        .arg(format!("-{name}"))
        .arg(pid.to_string())
        .status();
    assert!(status.expect("kill starts").success());
}
