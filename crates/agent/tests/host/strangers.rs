//! Programs that have the agent read what they should not: a perf map that is a file which its user may not read, and a page
//! that never comes.

use std::fs;
use std::fs::File;
use std::fs::Permissions;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::chown;
use std::os::unix::fs::lchown;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::time::Duration;
use std::time::Instant;

use crate::support;
use crate::support::Running;
use crate::support::Stacks;
use candela_model::SERVICE_NAME_LABEL;

/// A user that need not exist.
const STRANGER: u32 = 12_345;

const PATIENCE: Duration = Duration::from_secs(60);

/// A program that runs code of its own making.
struct Compiling(Child);

impl Compiling {
    fn start(program: &Path) -> Self {
        let user = STRANGER.to_string();
        let mut command = Command::new("setpriv");
        command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]);
        Self(
            command
                .arg(program)
                .arg("600")
                .spawn()
                .expect("setpriv is in util-linux"),
        )
    }

    fn map(&self) -> PathBuf {
        PathBuf::from(format!("/tmp/perf-{}.map", self.0.id()))
    }

    /// The names that it has written, once it has.
    fn names(&self) -> String {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let names = fs::read_to_string(self.map()).unwrap_or_default();
            if names.ends_with('\n') {
                return names;
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
        panic!("it writes no names");
    }

    /// How often each of these was seen on top of `run_compiled`: what it wrote itself, and the secret.
    fn seen(&self) -> [u64; 2] {
        // Worth 250 samples.
        let recording = support::record_work(self.0.id(), 499, Duration::from_millis(500));
        let stacks = Stacks::all(&recording.profile);
        let whole = stacks.with("run_compiled");
        assert!(whole > 50, "the rest is there: {}", stacks.sketch());
        ["compiled_code", "secret_line"].map(|name| stacks.with(name))
    }
}

impl Drop for Compiling {
    fn drop(&mut self) {
        self.0.kill().expect("it runs for ten minutes");
        self.0.wait().expect("it is our child");
        // One test may have failed between two maps.
        drop(fs::remove_file(self.map()));
    }
}

#[test]
fn the_agent_reads_no_names_for_a_user_who_could_not() {
    if support::cannot_sample() || support::lacks("gcc") || support::lacks("setpriv") {
        return;
    }
    if fs::metadata("/proc/self").expect("we run").uid() != 0 {
        support::skipped("only root can give files away");
        return;
    }
    let _turn = support::turn();
    let folder = tempfile::tempdir().expect("a temporary directory");
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("our folder");
    let program = folder.path().join("compiling");
    let flags = ["-O2", "-g", "-fno-omit-frame-pointer", "-o"].map(PathBuf::from);
    let paths = [program.clone(), support::source("jit.c")];
    support::run("gcc", flags.into_iter().chain(paths));
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("our program");
    let secret = folder.path().join("secret");
    let private = Permissions::from_mode(0o600);

    let compiling = Compiling::start(&program);
    let names = compiling.names();
    let map = compiling.map();
    let [own, _] = compiling.seen();
    assert!(own > 50, "{own} samples of code that it has named");

    fs::write(&secret, names.replace("compiled_code", "secret_line")).expect("our folder");
    fs::set_permissions(&secret, private.clone()).expect("our file");
    fs::remove_file(&map).expect("its names");
    symlink(&secret, &map).expect("a link");
    lchown(&map, Some(STRANGER), Some(STRANGER)).expect("root may");
    assert_eq!(compiling.seen(), [0, 0], "through a link");

    fs::remove_file(&map).expect("a link");
    fs::copy(&secret, &map).expect("/tmp is writable");
    fs::set_permissions(&map, private).expect("our file");
    assert_eq!(compiling.seen(), [0, 0], "a file of root");

    chown(&map, Some(STRANGER), Some(STRANGER)).expect("root may");
    let [_, given] = compiling.seen();
    assert!(given > 50, "{given} samples: the file is its own now");
}

/// What the program with such a page said, and the names of its services in a recording of it.
fn record_held_page(program: &Path, folder: &Path, mode: &str) -> (String, Vec<String>) {
    let mount = folder.join(mode);
    fs::create_dir(&mount).expect("our folder");
    let output = folder.join("output");
    let mut command = Command::new(program);
    command.arg("600").arg(mount).arg(mode);
    command.stdout(File::create(&output).expect("our folder"));
    let holding = Running(command.spawn().expect("it was just built"));
    support::wait_for_work(holding.pid(), Duration::from_millis(20));
    let recording = support::record_work(holding.pid(), 499, Duration::from_millis(500));
    let stacks = Stacks::all(&recording.profile);
    assert!(stacks.with("main") > 50, "{}", stacks.sketch());
    let series = recording.profile.series.iter();
    let services = series.filter_map(|series| series.labels.get(SERVICE_NAME_LABEL));
    let services = services.map(ToString::to_string).collect();
    (fs::read_to_string(output).expect("our folder"), services)
}

#[test]
fn a_page_that_a_users_file_system_would_have_to_bring_is_not_asked_for() {
    if support::cannot_sample() || support::lacks("gcc") {
        return;
    }
    if File::options()
        .read(true)
        .write(true)
        .open("/dev/fuse")
        .is_err()
    {
        support::skipped("no file system of our own can be mounted here");
        return;
    }
    let _turn = support::turn();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let program = folder.path().join("held_page");
    let flags = ["-O2", "-g", "-fno-omit-frame-pointer", "-o"].map(PathBuf::from);
    let paths = [program.clone(), support::source("held_page.c")];
    support::run("gcc", flags.into_iter().chain(paths));

    // The program has asked for its page, so that it is there.
    let (said, services) = record_held_page(&program, folder.path(), "answer");
    assert_eq!(said, "asked\nready\n");
    assert!(
        services.iter().all(|name| name == "held-page"),
        "{services:?}"
    );

    let (said, services) = record_held_page(&program, folder.path(), "hold");
    assert_eq!(said, "ready\n");
    assert!(
        services.iter().all(|name| name == "held_page"),
        "{services:?}"
    );
}
