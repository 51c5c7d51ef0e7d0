//! Stacks of real programs, stopped wherever they are, walked by our tables and by framehop.
//!
//! framehop reads `.eh_frame` or `.debug_frame` each time and shares no code with ours. Where neither says how a
//! frame is left (code that a runtime compiled, musl, functions without unwind information) it follows the frame
//! pointer whatever the code does, so stacks are compared up to and with the first such frame. Of programs that are
//! nearly always in such code, as those with musl are, nothing would be left: they are stepped instead. What it cannot do
//! itself is told apart from what differs: it does not read memory in expressions, which the assembly of libcrypto
//! has, and in Go's functions that go over to another stack .debug_frame is of no use.

#![expect(clippy::print_stderr, reason = "prints what was compared")]

use crate::support::{
    Files, Framehop, FramehopWalk, Running, Walked, compile, has_tool, observe_process, source,
};
use candela_unwind::WalkResult;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What was compared.
#[derive(Debug, Default)]
struct Tally {
    stacks: usize,
    /// Stacks that unwind information describes to their end.
    whole: usize,
    frames: usize,
    equal: usize,
    /// Callers in the equal stacks: the innermost frame is given, not found.
    equal_callers: usize,
    /// Equal to the end, those included where framehop follows frame pointers.
    equal_throughout: usize,
    /// Stacks that framehop gives up, and ours are complete, by the function that it cannot leave.
    given_up: BTreeMap<String, usize>,
    /// Stacks that end too soon in ours, which say so.
    short: BTreeMap<String, usize>,
    /// Stacks that differ, by the function after which they do.
    differing: BTreeMap<String, usize>,
}

/// Functions of Go's runtime that go over to another stack.
const OTHER_STACK: [&str; 7] = [
    "runtime.mcall",
    "runtime.morestack.abi0",
    "runtime.mstart.abi0",
    "runtime.systemstack.abi0",
    "runtime.asmcgocall.abi0",
    "runtime.nanotime1.abi0",
    "runtime.walltime.abi0",
];

// === impl Tally ===

impl Tally {
    fn add(&mut self, ours: &Walked, theirs: &FramehopWalk) {
        let mut are_described = theirs.is_described.iter().zip(&ours.names);
        let last = are_described
            .position(|(is_described, name)| !is_described || OTHER_STACK.contains(&name.as_str()));
        let end = last.map_or(usize::MAX, |last| last + 1);
        let our_part = &ours.frames[..ours.frames.len().min(end)];
        let their_part = &theirs.frames[..theirs.frames.len().min(end)];
        self.stacks += 1;
        self.whole += usize::from(last.is_none());
        self.frames += their_part.len();
        self.equal_throughout += usize::from(ours.frames == theirs.frames);
        if our_part == their_part {
            self.equal += 1;
            self.equal_callers += their_part.len().saturating_sub(1);
            return;
        }
        let pairs = our_part.iter().zip(their_part);
        let equal = pairs
            .take_while(|(our_frame, their_frame)| our_frame == their_frame)
            .count();
        let is_complete = ours.result == WalkResult::Complete;
        // A return address that is in nobody's code is no opinion: rules of hand-written code that are wrong for an
        // instruction or two (OpenSSL's multiplication has some) lead framehop there.
        let is_lost = equal + 1 == theirs.frames.len() && !theirs.is_described[equal];
        // Nor is one from which it finds its way: in the first instructions of Go's `time.now` it takes what lies on top of
        // the stack for a caller, which may be an address of code that was left there, and goes on where we do.
        let is_no_code = theirs.is_described.get(equal) == Some(&false);
        let is_made_up = (is_no_code || ours.names[equal - 1] == "time.now")
            && theirs.frames.get(equal + 1..) == ours.frames.get(equal..);
        // It gives the CPU to another goroutine's stack. Before it does its caller is on top of its own stack, and ours
        // goes by the frame pointer and leaves that one frame out.
        let is_switching = ours.names[equal - 1].starts_with("runtime.gogo");
        // Nor is it in ours, which say that they end there: hand-written hashing without a description uses the register of
        // the frame pointer for a part of the hash.
        let is_cut = ours.result == WalkResult::NoMapping && equal + 1 == ours.frames.len();
        let class = match (
            equal == their_part.len() || is_lost || is_made_up,
            equal == our_part.len() || is_cut,
        ) {
            _ if is_switching => &mut self.short,
            (true, _) if is_complete => &mut self.given_up,
            (_, true) if !is_complete => &mut self.short,
            _ => &mut self.differing,
        };
        let count = class.entry(ours.names[equal - 1].clone()).or_default();
        *count += 1;
        if *count == 1 {
            eprintln!("{equal} equal: {ours:#x?}\n{theirs:#x?}");
        }
    }
}

/// Watches process `pid`, compares, and prints the result.
fn compare(name: &str, pid: u32, rounds: u32) -> Tally {
    let mut files = Files::without_tables_of(&[CHROMIUM]);
    let mut framehop = Framehop::default();
    let mut tally = Tally::default();
    observe_process(pid, rounds, |report| {
        tally.add(&files.walk(report), &framehop.walk(report));
    });
    eprintln!("{name}: {tally:?}");
    tally
}

/// Where libgcc returns to a landing pad its frame cannot be left: in programs that only throw, in a few of a
/// thousand stacks ours are short, and framehop follows a frame pointer that is none.
const MOST_SHORT: f64 = 0.01;

/// Expects no stack to differ. Stacks that framehop gives up are left out; something must be left to compare.
fn assert_nothing_differs(name: &str, pid: u32, rounds: u32) -> Tally {
    let tally = compare(name, pid, rounds);
    let sum = |class: &BTreeMap<String, usize>| class.values().sum::<usize>();
    let given_up = sum(&tally.given_up);
    eprintln!(
        "{name}: framehop gives up {given_up} of {} stacks, which are left out",
        tally.stacks
    );
    assert_eq!(sum(&tally.differing), 0, "{name}: {tally:?}");
    assert!(
        sum(&tally.short) as f64 <= MOST_SHORT * tally.stacks as f64,
        "{name}: {tally:?}"
    );
    // None are reported where observing is not permitted, which was said.
    assert!(
        tally.equal_callers > 0 || tally.stacks == 0,
        "{name}: nothing was compared: {tally:?}"
    );
    tally
}

/// Expects no stack to differ, and most to be equal.
fn assert_agrees(name: &str, pid: u32, rounds: u32) {
    let tally = assert_nothing_differs(name, pid, rounds);
    assert!(
        tally.equal as f64 >= 0.6 * tally.stacks as f64,
        "{name}: {tally:?}"
    );
}

/// Builds a program and watches it.
fn assert_compiled_agrees(compiler: &str, name: &str, flags: &[&str], rounds: u32) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Some(program) = compile(compiler, name, flags, directory.path()) else {
        return;
    };
    let running = Running::start(Command::new(program));
    assert_agrees(
        &format!("{compiler} {name} {flags:?}"),
        running.id(),
        rounds,
    );
}

/// Starts `program` with `arguments` and watches it; it writes a line when it is ready.
fn assert_command_agrees<Argument: AsRef<OsStr>>(
    program: &str,
    arguments: &[Argument],
    rounds: u32,
) {
    if !has_tool(program) {
        return;
    }
    let mut command = Command::new(program);
    command.args(arguments);
    let running = Running::start(command);
    assert_agrees(program, running.id(), rounds);
}

/// What glibc may use of the processor: it chooses its functions by that.
const HARDWARE: [Option<&str>; 2] = [
    None,
    Some("glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-AVX512BW,-EVEX,-BMI2,-ERMS,-SSE4_2"),
];

#[test]
fn c_library() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Some(program) = compile("gcc", "busy.c", &["-O2"], directory.path()) else {
        return;
    };
    for hardware in HARDWARE {
        let mut command = Command::new(&program);
        command.envs(hardware.map(|it| ("GLIBC_TUNABLES", it)));
        let running = Running::start(command);
        assert_agrees(&format!("gcc busy.c with {hardware:?}"), running.id(), 300);
    }
}

#[test]
fn cpp_library() {
    assert_compiled_agrees("g++", "busy.cpp", &["-O2", "-pthread"], 300);
}

#[test]
fn rust() {
    assert_compiled_agrees("rustc", "busy.rs", &["-Copt-level=3"], 300);
}

#[test]
fn go() {
    assert_compiled_agrees("go", "busy.go", &[], 200);
}

#[test]
fn python() {
    assert_command_agrees("python3", &[source("busy.py")], 600);
}

#[test]
fn perl() {
    let program = "$| = 1; print qq(ready\\n); while (1) { @a = sort { $a <=> $b } map { rand } 1..500; \
        $h{int rand 1000} .= 'x'; %h = () if rand() < 0.01; ($s = 'abc' x 50) =~ s/b+/c/g }";
    assert_command_agrees("perl", &["-e", program], 600);
}

/// What OpenSSL may believe of the processor: it chooses its assembly by that. Nothing, or `FIRST:SECOND` without some of the
/// bits that OPENSSL_ia32cap(3) lists: no ADX; neither AVX2, BMI nor ADX; nor AVX and AES either.
const PROCESSORS: [Option<&str>; 4] = [
    None,
    Some(":~0x80000"),
    Some(":0"),
    Some("~0x1200000000000000:0"),
];

/// Hand-written assembly with hand-written unwind information. In how much of it framehop loses its way depends on the
/// processor, so how many stacks are equal is no claim here.
#[test]
fn openssl() {
    if !has_tool("openssl") {
        return;
    }
    // Not RSA: in its multiplication framehop loses its way on processors that have ADX.
    let script = "echo ready; exec openssl speed -seconds 60 ecdsap256 2>/dev/null";
    for processor in PROCESSORS {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command.envs(processor.map(|it| ("OPENSSL_ia32cap", it)));
        let running = Running::start(command);
        let name = format!("openssl with {processor:?}");
        assert_nothing_differs(&name, running.id(), 200);
    }
}

#[test]
fn node() {
    assert_command_agrees("node", &[source("busy.js")], 60);
}

#[test]
fn java() {
    assert_command_agrees("java", &[source("Busy.java")], 40);
}

/// Where Debian has one folder for each version.
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";

/// It refuses to run as root.
const NOBODY: u32 = 65534;

#[test]
fn postgres() {
    let versions = std::fs::read_dir(POSTGRES_VERSIONS).into_iter().flatten();
    let mut programs = versions.filter_map(|entry| Some(entry.ok()?.path().join("bin")));
    let Some(programs) = programs.find(|programs| programs.join("initdb").is_file()) else {
        eprintln!("skipped: PostgreSQL is not installed");
        return;
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let is_root = std::os::unix::fs::chown(directory.path(), Some(NOBODY), Some(NOBODY)).is_ok();
    let data = directory.path().join("data");
    let command = |program: &str| {
        let mut command = Command::new(programs.join(program));
        command.arg("-D").arg(&data).current_dir(directory.path());
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    };
    let mut make = command("initdb");
    make.args(["--no-sync", "--locale=C"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    assert!(make.status().expect("initdb runs").success());

    let query = "SELECT count(*), max(md5(i::text)) FROM \
        (SELECT generate_series(1, 2000000000) i) t WHERE i::text ~ '1+2' AND md5(i::text) LIKE 'a%';\n";
    let input = directory.path().join("query");
    std::fs::write(&input, query).expect("writable");
    let mut server = Command::new(programs.join("postgres"));
    server.arg("--single").arg("-D").arg(&data).arg("postgres");
    if is_root {
        server.uid(NOBODY).gid(NOBODY);
    }
    server.stdin(std::fs::File::open(&input).expect("just written"));
    let running = Running::start(server);
    assert_agrees("postgres", running.id(), 600);
}

const CHROMIUM: &str = "/usr/lib/chromium/chromium";

#[test]
fn chromium() {
    if !Path::new(CHROMIUM).is_file() {
        eprintln!("skipped: chromium is not installed");
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "exec \"$0\" \"$@\" 2>&1",
        CHROMIUM,
        "--headless",
        "--no-sandbox",
    ]);
    command.args(["--no-zygote", "--disable-gpu", "--remote-debugging-port=0"]);
    command.arg(format!("--user-data-dir={}", directory.path().display()));
    command.arg(source("busy.html"));
    let running = Running::start(command);
    let start = Instant::now();
    let renderer = loop {
        if let Some(renderer) = child_with(running.id(), "--type=renderer") {
            break renderer;
        }
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "chromium starts no renderer"
        );
        std::thread::park_timeout(Duration::from_millis(50));
    };
    assert_agrees("chromium", renderer, 30);
}

/// A child of process `pid` that has `argument`.
fn child_with(pid: u32, argument: &str) -> Option<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let children = threads.flatten().flat_map(|thread| {
        let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        let pids = children
            .split_whitespace()
            .map(|pid| pid.parse::<u32>().ok());
        pids.flatten().collect::<Vec<u32>>()
    });
    children.into_iter().find(|child| {
        let arguments = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
        arguments
            .split(|byte| *byte == 0)
            .any(|part| part == argument.as_bytes())
    })
}
