//! The container image as it is documented: what its recipe puts together, run by the command of docs/deploy.md, with
//! the capabilities that stand there and no others, records a program of the host.
//!
//! The program inside is the one under test, with the libraries that it needs: the recipe's first stage would build
//! another one, static, for a quarter of an hour.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Output;

use crate::support;
use crate::support::Program;
use crate::support::Running;

const IMAGE: &str = "candela-agent";

/// Who may not raise limits starts containers with small ones. The filter of Podman 4 allows bpf(2) and
/// perf_event_open(2) for CAP_SYS_ADMIN only, that of Docker for CAP_BPF and CAP_PERFMON.
const FOR_PODMAN: [&str; 6] = [
    "--ulimit",
    "nofile=1024:1024",
    "--ulimit",
    "nproc=1024:1024",
    "--security-opt",
    "seccomp=unconfined",
];

/// A storage of the test, without anybody's configuration. Its containers end with the value.
struct Podman {
    folder: PathBuf,
}

// === impl Podman ===

impl Podman {
    fn ask(&self, arguments: &[&str]) -> Output {
        Command::new("podman")
            .env("CONTAINERS_CONF", "/dev/null")
            .args(["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"])
            .args(["--events-backend", "file", "--root"])
            .arg(self.folder.join("storage"))
            .arg("--runroot")
            .arg(self.folder.join("run"))
            .args(arguments)
            .output()
            .unwrap()
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        self.ask(&["rm", "--all", "--force", "--time", "0"]);
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

#[track_caller]
fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", support::stderr(&output));
    support::stdout(&output)
}

/// The second stage of the recipe, and the files that it takes from the first one.
fn write_context(folder: &Path) {
    let program = env!("CARGO_BIN_EXE_candela");
    succeed(
        Command::new("strip")
            .args(["-o", "candela", program])
            .current_dir(folder),
    );
    fs::create_dir_all(folder.join("data")).unwrap();
    fs::create_dir_all(folder.join("etc/ssl/certs")).unwrap();
    fs::write(folder.join("etc/ssl/certs/ca-certificates.crt"), "").unwrap();
    let libraries = succeed(Command::new("ldd").arg(program));
    let paths = libraries
        .split_whitespace()
        .filter(|word| word.starts_with('/'));
    for path in paths {
        let copy = folder.join("libraries").join(path.trim_start_matches('/'));
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(path, copy).unwrap();
    }
    let recipe = text("deploy/container/Dockerfile");
    let (_, second_stage) = recipe.split_once("\nFROM scratch\n").unwrap();
    let second_stage = second_stage.replace("COPY --from=build ", "COPY ");
    let recipe = format!("FROM scratch\nCOPY libraries /\n{second_stage}");
    fs::write(folder.join("Dockerfile"), recipe).unwrap();
}

/// The words of the documentation's `docker run` behind `docker`.
fn documented_run() -> Vec<String> {
    let docs = text("docs/deploy.md");
    let (_, after) = docs.split_once("\ndocker run ").unwrap();
    let (command, _) = after.split_once("\n```").unwrap();
    let words = command.split_whitespace().filter(|word| *word != "\\");
    let run = std::iter::once("run").chain(words);
    run.map(str::to_owned).collect()
}

#[test]
fn the_image_records_the_host_with_the_documented_capabilities() {
    let test = "the_image_records_the_host_with_the_documented_capabilities";
    let tools = ["podman", "gcc", "strip", "ldd"];
    if !support::is_root(test) || !tools.iter().all(|tool| support::has_tool(test, tool)) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let context = folder.path().join("context");
    fs::create_dir(&context).unwrap();
    write_context(&context);
    let podman = Podman {
        folder: folder.path().to_owned(),
    };
    let place = context.to_str().unwrap();
    let built = podman.ask(&["build", "--layers=false", "--tag", IMAGE, place]);
    support::expect_code(&built, 0);

    let data_dir = folder.path().join("data");
    let server = Running::start(&[
        "server",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        data_dir.to_str().unwrap(),
    ]);
    let program = support::compile_shares(folder.path());
    let _burner = Program::start(Command::new(&program).arg("100000"));
    let url = server.url("");
    let run: Vec<String> = documented_run()
        .into_iter()
        .map(|word| match word.strip_prefix("CANDELA_AGENT__SERVER=") {
            Some(_) => format!("CANDELA_AGENT__SERVER={url}"),
            None => word,
        })
        .collect();
    assert!(run.iter().any(|word| word.ends_with(&url)), "{run:?}");
    let (image, options) = run.split_last().unwrap();
    assert_eq!(image, IMAGE);
    let mut arguments: Vec<&str> = options.iter().map(String::as_str).collect();
    arguments.extend(FOR_PODMAN);
    arguments.push(image);
    let started = podman.ask(&arguments);
    if !started.status.success() {
        let reason = support::stderr(&started);
        println!("SKIP {test}: podman runs no container here: {reason}");
        return;
    }
    let path = "/api/v1/top?type=cpu&query=%7Bprocess_executable_name%3D%22shares%22%7D";
    support::eventually("a function of the host's program is recorded", || {
        let state = podman.ask(&["inspect", "--format", "{{.State.Running}}", IMAGE]);
        let is_running = support::stdout(&state).trim() == "true";
        let logs = || podman.ask(&["logs", IMAGE]);
        assert!(is_running, "it has ended: {:?}", logs());
        let (_, body) = support::get(&server.url(path));
        let table: serde_json::Value = serde_json::from_slice(&body).ok()?;
        let functions = table["functions"].as_array()?;
        let is_there = functions.iter().any(|row| row["name"] == "burn_fifty");
        is_there.then_some(())
    });
}
