//! Starting programs and reading what the kernel accounts for them.

use std::fs;
use std::io::BufRead;
use std::io::BufReader;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::ExitStatus;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

/// Clock ticks a second of `/proc/PID/stat`: fixed in the ABI of x86-64 Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// A program that is killed when the value is dropped.
#[derive(Debug)]
pub(crate) struct Program(Child);

impl Program {
    pub(crate) fn start(command: &mut Command) -> Result<Self, String> {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{command:?}: {error}"))?;
        Ok(Self(child))
    }

    /// Starts `candela` and waits until it says where it is: the program and its URL.
    pub(crate) fn start_candela(command: &mut Command) -> Result<(Self, String), String> {
        let mut child = command
            .env("CANDELA_SERVER__OTLP_GRPC_LISTEN", "127.0.0.1:0")
            .env("CANDELA_SERVER__OTLP_HTTP_LISTEN", "127.0.0.1:0")
            // What is measured is what a server can do, not what a tenant may by default.
            .env("CANDELA_SERVER__LIMITS__INGEST_RATE", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{command:?}: {error}"))?;
        let stderr = child.stderr.take().ok_or("stderr is not piped")?;
        let mut lines = BufReader::new(stderr).lines();
        let url = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("candela is at ").map(str::to_owned))
            .ok_or("candela ended without an address")?;
        // Nobody reads the rest, but a full pipe must not block it.
        std::thread::spawn(move || lines.map_while(Result::ok).count());
        Ok((Self(child), url))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// How it has ended, if it has.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>, String> {
        self.0.try_wait().map_err(|error| error.to_string())
    }

    /// Fails when the program has ended: what was measured of it then is not what the row is about.
    pub(crate) fn still_runs(&mut self) -> Result<(), String> {
        match self.ended()? {
            None => Ok(()),
            Some(status) => Err(format!(
                "process {} ended with {status} while it was measured",
                self.pid()
            )),
        }
    }

    /// Asks the program to end, and waits until it has.
    pub(crate) fn end(&mut self, most: Duration) -> Result<(), String> {
        output(Command::new("kill").arg(self.pid().to_string()))?;
        let begun = Instant::now();
        while begun.elapsed() < most {
            if self.ended()?.is_some() {
                return Ok(());
            }
            measure_for(Duration::from_millis(50));
        }
        Err(format!("process {} does not end", self.pid()))
    }

    /// User and system time so far, seconds.
    pub(crate) fn cpu_seconds(&self) -> Result<f64, String> {
        let path = format!("/proc/{}/stat", self.pid());
        let stat = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let after_name = stat.rsplit(") ").next().unwrap_or_default();
        let fields: Vec<&str> = after_name.split(' ').collect();
        let ticks = |index: usize| {
            fields
                .get(index)
                .and_then(|field| field.parse::<f64>().ok())
        };
        let user = ticks(11).ok_or("no utime")?;
        let system = ticks(12).ok_or("no stime")?;
        Ok((user + system) / TICKS_PER_SECOND)
    }

    /// Resident memory, bytes.
    pub(crate) fn resident_bytes(&self) -> Result<u64, String> {
        self.status_bytes("VmRSS:")
    }

    /// The most that it was, bytes.
    pub(crate) fn most_resident_bytes(&self) -> Result<u64, String> {
        self.status_bytes("VmHWM:")
    }

    /// Lets the most begin with what there is now.
    pub(crate) fn forget_most_resident(&self) -> Result<(), String> {
        let path = format!("/proc/{}/clear_refs", self.pid());
        fs::write(&path, "5").map_err(|error| format!("{path}: {error}"))
    }

    fn status_bytes(&self, name: &str) -> Result<u64, String> {
        let path = format!("/proc/{}/status", self.pid());
        let status = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let line = status
            .lines()
            .find(|line| line.starts_with(name))
            .ok_or_else(|| format!("no {name}"))?;
        let kib: u64 = line
            .split_whitespace()
            .nth(1)
            .and_then(|kib| kib.parse().ok())
            .ok_or("no number")?;
        Ok(kib * 1024)
    }

    /// The sum of a field over all BPF objects that the process holds, as the kernel prints it in
    /// `fdinfo`: `memlock` (bytes of maps) or `run_time_ns` (of programs).
    pub(crate) fn bpf_sum(&self, field: &str) -> Result<u64, String> {
        let folder = format!("/proc/{}/fdinfo", self.pid());
        let entries = fs::read_dir(&folder).map_err(|error| format!("{folder}: {error}"))?;
        let mut seen = std::collections::BTreeSet::new();
        let mut sum = 0;
        for entry in entries.filter_map(Result::ok) {
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            let value_of = |name: &str| {
                let line = text
                    .lines()
                    .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
                line.and_then(|value| value.trim().parse::<u64>().ok())
            };
            // Several descriptors may be of one object.
            let object = (value_of("map_id"), value_of("prog_id"));
            if object != (None, None) && seen.insert(object) {
                sum += value_of(field).unwrap_or(0);
            }
        }
        Ok(sum)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a program to its end; its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "{command:?}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The JSON at an address.
pub(crate) fn json_of(url: &str) -> Result<serde_json::Value, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{url}: {error}");
    let mut response = ureq::get(url).call().map_err(|error| failed(&error))?;
    let body = response
        .body_mut()
        .read_to_vec()
        .map_err(|error| failed(&error))?;
    serde_json::from_slice(&body).map_err(|error| failed(&error))
}

/// Lets time pass: a bench measures over a period, there is no condition to wait for.
pub(crate) fn measure_for(duration: Duration) {
    let start = Instant::now();
    while let Some(rest) = duration.checked_sub(start.elapsed()) {
        std::thread::park_timeout(rest);
    }
}

/// Compiles `source`, a path in the checkout, into `folder`.
pub(crate) fn compile(
    root: &Path,
    folder: &Path,
    source: &str,
    compiler: &[&str],
) -> Result<PathBuf, String> {
    let source = root.join(source);
    let name = source
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .replace('.', "_");
    let program = folder.join(name);
    let mut command = Command::new(compiler[0]);
    command
        .args(&compiler[1..])
        .arg("-o")
        .arg(&program)
        .arg(&source)
        .current_dir(folder);
    output(&mut command)?;
    Ok(program)
}

/// The program whose three functions burn 50, 30 and 20 % of its time below a recursion of depth 60,
/// without frame pointers; it runs until it is stopped.
pub(crate) fn shares(root: &Path, folder: &Path) -> Result<Command, String> {
    let source = "crates/agent/tests/programs/shares.c";
    let program = compile(
        root,
        folder,
        source,
        &["gcc", "-O2", "-g", "-fomit-frame-pointer"],
    )?;
    let mut command = Command::new(program);
    command.arg("100000");
    Ok(command)
}

/// Accounting of BPF run time, off again when dropped: it costs a little.
#[derive(Debug)]
pub(crate) struct BpfStatistics;

const SWITCH: &str = "/proc/sys/kernel/bpf_stats_enabled";

impl BpfStatistics {
    pub(crate) fn enable() -> Result<Self, String> {
        fs::write(SWITCH, "1").map_err(|error| format!("{SWITCH}: {error}; run as root"))?;
        Ok(Self)
    }
}

impl Drop for BpfStatistics {
    fn drop(&mut self) {
        let _ = fs::write(SWITCH, "0");
    }
}
