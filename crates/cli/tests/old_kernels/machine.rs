//! A machine with one of the kernels that scripts/fetch-kernels has fetched. It is emulated, so that it needs no
//! privileges and nothing of the host's processor, and is about twenty times slower than the host.

use std::collections::BTreeSet;
use std::fs;
use std::fs::File;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use candela_formats::ReadOptions;
use candela_model::Profile;
use tempfile::TempDir;

use crate::support;

/// A machine takes one and a half to four and a half minutes on two idle cores.
const LONGEST_RUN: Duration = Duration::from_secs(900);

const EMULATOR: &str = "qemu-system-x86_64";
const DISK_BYTES: u64 = 64 << 20;

/// How much of the console a failed test shows.
const SHOWN_LINES: usize = 40;

/// What a machine has told: of each check of `init` its output, its messages, its exit code and its files.
pub(crate) struct Told {
    results: TempDir,
    /// The version of its kernel.
    pub(crate) release: String,
}

/// A machine that runs, until the value is dropped.
struct Machine(Child);

// === impl Told ===

impl Told {
    /// A file of the results; empty where there is none.
    pub(crate) fn text(&self, name: &str) -> String {
        let bytes = fs::read(self.results.path().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// What a check wrote to standard output; it ended with this code.
    #[track_caller]
    pub(crate) fn output(&self, check: &str, code: i32) -> String {
        let found = self.text(&format!("{check}.code"));
        assert_eq!(found.trim(), code.to_string(), "{}", self.messages(check));
        self.text(&format!("{check}.out"))
    }

    /// What it wrote to standard error.
    pub(crate) fn messages(&self, check: &str) -> String {
        self.text(&format!("{check}.err"))
    }

    /// The profile that it wrote.
    #[track_caller]
    pub(crate) fn profile(&self, check: &str) -> Profile {
        let path = self.results.path().join(format!("{check}.pb.gz"));
        let bytes = fs::read(path).unwrap_or_else(|error| {
            panic!("{check}: {error}\n{}", self.messages(check));
        });
        let options = ReadOptions::default();
        let (profile, _) = candela_formats::read_pprof(&bytes[..], &options).unwrap();
        profile
    }
}

// === impl Machine ===

impl Drop for Machine {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs all checks on a kernel. `None`, with the reason printed, where it or the emulator is not there.
pub(crate) fn run_checks(test: &str, kernel: &str) -> Option<Told> {
    let kernel = fetched(test, kernel)?;
    let tools = [EMULATOR, "cpio", "busybox", "gcc", "strip", "tar"];
    if !tools.iter().all(|tool| support::has_tool(test, tool)) {
        return None;
    }
    let _turn = turn();
    let results = tempfile::tempdir().unwrap();
    let path = |name: &str| results.path().join(name);
    File::create(path("disk"))
        .unwrap()
        .set_len(DISK_BYTES)
        .unwrap();
    let mut machine = start(&kernel, &path("disk"), &path("console"));
    let console = || fs::read_to_string(path("console")).unwrap_or_default();
    support::within(LONGEST_RUN, &format!("{test}: the machine ends"), || {
        machine.0.try_wait().unwrap()
    });
    let unpacked = Command::new("tar")
        .arg("-xf")
        .arg(path("disk"))
        .arg("-C")
        .arg(results.path())
        .stderr(Stdio::null())
        .status();
    let console = console();
    assert!(
        unpacked.unwrap().success(),
        "{test}: no results; the console's end is\n{}",
        last_lines(&console)
    );
    Some(Told {
        results,
        release: fs::read_to_string(kernel.join("release")).unwrap(),
    })
}

/// One machine at a time, of all checkouts: it is slow enough. The turn lasts until the file is dropped.
fn turn() -> File {
    let path = std::env::temp_dir().join("candela-tests-of-old-kernels.lock");
    // Another user may have made it, who lets us read it.
    let _ = File::create_new(&path);
    let turn = File::open(&path).unwrap();
    turn.lock().unwrap();
    turn
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
}

/// The folder of a fetched kernel. `None`, with the reason printed, where there is none.
#[expect(clippy::print_stdout, reason = "a test that skips says why")]
fn fetched(test: &str, kernel: &str) -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_BIN_EXE_candela"));
    let target = program.ancestors().nth(2)?;
    let folder = target.join("test-kernels").join(kernel);
    let is_there = folder.join("release").is_file();
    if !is_there {
        println!("SKIP {test}: scripts/fetch-kernels has not fetched the kernel {kernel}");
    }
    is_there.then_some(folder)
}

fn start(kernel: &Path, disk: &Path, console: &Path) -> Machine {
    let drive = format!("file={},if=none,id=disk,format=raw", disk.display());
    let child = Command::new(EMULATOR)
        // Both processors on one thread: with two, one may run code that the other one is just patching (as the
        // kernel does where tracepoints are turned on), which real processors never show, and panics.
        .args(["-accel", "tcg,thread=single", "-cpu", "max", "-smp", "2"])
        .args(["-m", "1024", "-nographic", "-no-reboot", "-net", "none"])
        .arg("-kernel")
        .arg(kernel.join("vmlinuz"))
        .arg("-initrd")
        .arg(initial_files())
        .args(["-drive", &drive, "-device", "nvme,drive=disk,serial=1"])
        .args(["-append", "console=ttyS0 panic=-1 quiet"])
        .stdin(Stdio::null())
        .stdout(File::create(console).unwrap())
        .spawn();
    Machine(child.unwrap())
}

/// The machine's files as an archive, made once.
fn initial_files() -> &'static Path {
    static ARCHIVE: OnceLock<PathBuf> = OnceLock::new();
    ARCHIVE.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("old_kernels");
        let _ = fs::remove_dir_all(&folder);
        let root = folder.join("root");
        fill(&root);
        let archive = folder.join("initramfs.cpio");
        let script = "cd \"$0\" && find . | cpio --quiet -o -H newc >\"$1\"";
        run(Command::new("sh")
            .args(["-c", script])
            .arg(&root)
            .arg(&archive));
        archive
    })
}

fn fill(root: &Path) {
    let bin = root.join("bin");
    let empty = ["proc", "sys", "dev", "tmp", "etc", "results"];
    for folder in empty
        .iter()
        .map(|name| root.join(name))
        .chain([bin.clone()])
    {
        fs::create_dir_all(folder).unwrap();
    }
    fs::write(root.join("etc/passwd"), PASSWD).unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/old_kernels");
    fs::copy(here.join("init"), root.join("init")).unwrap();
    let busybox = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|folder| folder.join("busybox"))
        .find(|path| path.is_file());
    fs::copy(busybox.unwrap(), bin.join("busybox")).unwrap();
    let mut strip = Command::new("strip");
    strip.args([env!("CARGO_BIN_EXE_candela"), "-o"]);
    run(strip.arg(bin.join("candela")));

    let shares = here.join("../../../agent/tests/programs/shares.c");
    let without_frame_pointers = ["-fomit-frame-pointer", "-pthread"];
    let with_frame_pointers = ["-fno-omit-frame-pointer", "-static"];
    compile(
        &here.join("truths.c"),
        &without_frame_pointers,
        &bin.join("truths"),
    );
    compile(&shares, &without_frame_pointers, &bin.join("shares"));
    compile(&shares, &with_frame_pointers, &bin.join("shares-static"));
    for library in libraries(&["candela", "truths"].map(|name| bin.join(name))) {
        let place = root.join(library.trim_start_matches('/'));
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::copy(&library, place).unwrap();
    }
}

/// Root, and a user without privileges.
const PASSWD: &str = "root:x:0:0:root:/:/bin/sh\nuser:x:1000:1000:user:/tmp:/bin/sh\n";

fn compile(source: &Path, flags: &[&str], program: &Path) {
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-g"]).args(flags).arg("-o").arg(program);
    run(gcc.arg(source));
}

/// The files that programs load, the loader itself among them.
fn libraries(programs: &[PathBuf]) -> BTreeSet<String> {
    let output = Command::new("ldd").args(programs).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = text.split_whitespace().filter(|word| word.starts_with('/'));
    // The programs' own lines end with a colon.
    words
        .filter(|word| !word.ends_with(':'))
        .map(ToOwned::to_owned)
        .collect()
}

fn run(command: &mut Command) {
    let status = command.status().unwrap();
    assert!(status.success(), "{command:?}: {status}");
}
