//! All code of one process, sampled for a moment and looked into.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use candela_symbols::Error as SymbolError;
use candela_symbols::PerfMapReader;
use candela_symbols::foreign::Refusal;
use hashbrown::HashSet;
use serde::Serialize;

use crate::error::AgentError;
use crate::kinds::Kind;
use crate::kinds::Kinds;
use crate::labels::ProcessFacts;
use crate::missing_frames::code::CodeReport;
use crate::missing_frames::debug_packages::DebugPackages;
use crate::missing_frames::debug_packages::quoted;
use crate::missing_frames::explanation::FrameCause;
use crate::missing_frames::explanation::filled;
use crate::missing_frames::runtimes;
use crate::missing_frames::runtimes::Runtime;
use crate::missing_frames::sampled::KERNEL;
use crate::missing_frames::sampled::SampledFrames;
use crate::options::AgentOptions;
use crate::options::RecordOptions;
use crate::options::RecordTargets;
use crate::processes::FileNumber;
use crate::processes::MapsLine;
use crate::processes::ProcessEnvironment;
use crate::processes::check_is_process;
use crate::processes::may_look_into;
use crate::processes::open_mapped;
use crate::processes::parse_maps;
use crate::processes::read_maps;
use crate::record::Recording;
use crate::record::record;
use crate::source::Missing;

/// Samples per second.
const RATE_HZ: u32 = 199;

/// Code that has no file, or one that is no ELF file.
const COMPILED: &str = "[compiled at run time]";

/// What an interpreter runs: no code at all.
const INTERPRETED: &str = "[interpreted]";

/// Settings of a look at a process.
#[derive(Clone, Debug)]
pub struct FrameCheckOptions {
    /// The process.
    pub pid: u32,
    /// How long it is sampled.
    pub duration: Duration,
    /// Ends sampling when it becomes true.
    pub stop: Arc<AtomicBool>,
    /// Bounds and debuginfod servers, as in the continuous agent; the rest is not used.
    pub agent: AgentOptions,
}

/// What is missing in the frames of a process, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FrameReport {
    /// The process.
    pub pid: u32,
    /// Its program, as the process sees it.
    pub program: String,
    /// The runtime that it runs; empty where it is none that is known.
    pub runtime: String,
    /// What samples say; `None` where none could be taken.
    pub sampled: Option<SampledFrames>,
    /// Why there are no samples; empty where there are.
    pub not_sampled: String,
    /// All of its code, those parts first that most frames miss a name in.
    pub code: Vec<CodeReport>,
}

/// One thing that is wrong, and what mends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The name of the cause.
    pub cause: &'static str,
    /// What has happened.
    pub meaning: String,
    /// What to do.
    #[serde(rename = "fix")]
    pub remedy: String,
}

/// Samples a process for a moment and looks into all of its code. Where sampling is not permitted or not possible,
/// the code is looked into all the same.
///
/// # Errors
/// [`AgentError::KernelThread`], [`AgentError::NotAProcess`], and as [`record`](crate::record()) where the process
/// does not exist.
pub fn check_frames(options: &FrameCheckOptions) -> Result<FrameReport, AgentError> {
    let pid = options.pid;
    check_is_process(pid)?;
    let asks_debuginfod = !options.agent.debuginfod_urls.is_empty();
    // Before it is sampled: it may end meanwhile.
    let look = Look::at(pid);
    let sampled = sample(options);
    let (sampled, not_sampled) = match sampled {
        Ok(recording) if recording.report.quality.samples == 0 => {
            (None, why_nothing_was_seen(pid, &recording.report.missing))
        }
        Ok(recording) => (Some(SampledFrames::of(&recording)), String::new()),
        Err(error) => (None, error.to_string()),
    };
    Ok(look.report(sampled, not_sampled, asks_debuginfod))
}

fn sample(options: &FrameCheckOptions) -> Result<Recording, AgentError> {
    let options = RecordOptions {
        rate_hz: RATE_HZ,
        // What waits has stacks too, where the kernel can take them.
        kinds: Kinds::from([Kind::Cpu, Kind::OffCpu]),
        duration: Some(options.duration),
        stop: Arc::clone(&options.stop),
        agent: options.agent.clone(),
        ..RecordOptions::new(RecordTargets::Pids(vec![options.pid]))
    };
    record(options, || {})
}

/// Why there was no sample, though sampling was possible.
fn why_nothing_was_seen(pid: u32, missing: &[Missing]) -> String {
    if !may_look_into(pid) {
        return format!(
            "the mappings of process {pid} may not be read: run as root, or with cap_sys_ptrace and every capability \
             that the process has"
        );
    }
    let has_waits = missing.iter().all(|it| it.what != Kind::OffCpu.name());
    if has_waits {
        return "it neither ran nor waited where that can be seen".to_owned();
    }
    let reasons: Vec<String> = missing.iter().map(ToString::to_string).collect();
    format!(
        "it did not run, and its waits are not seen: {}",
        reasons.join("; ")
    )
}

/// What `/proc` says of a process.
struct Look {
    pid: u32,
    program: String,
    arguments: Vec<String>,
    root: PathBuf,
    code: Vec<CodeReport>,
    has_compiled_code: bool,
    perf_map: PerfMap,
}

/// The names that a runtime has written.
enum PerfMap {
    There,
    Missing,
    /// The file as we see it, and why it is not read.
    Refused(PathBuf, Refusal),
}

impl Look {
    fn at(pid: u32) -> Self {
        let facts = ProcessFacts::read(pid, "", "", None);
        let mut look = Self {
            pid,
            program: facts.executable,
            arguments: facts.arguments,
            root: PathBuf::from(format!("/proc/{pid}/root")),
            code: Vec::new(),
            has_compiled_code: false,
            perf_map: PerfMap::Missing,
        };
        let mut maps = Vec::new();
        // Of one that ends now nothing is said.
        let _ = read_maps(pid, &mut maps);
        let mut seen = HashSet::new();
        for line in parse_maps(&maps).filter(|line| line.is_executable) {
            if line.inode == 0 {
                // The kernel's own pages have names in brackets; a runtime may name its memory, too.
                let is_kernels = matches!(line.path, b"[vdso]" | b"[vsyscall]" | b"[uprobes]");
                look.has_compiled_code |= !is_kernels;
                continue;
            }
            if seen.insert((line.device, line.inode)) {
                look.add_file(&line);
            }
        }
        look.perf_map = perf_map_of(pid);
        look
    }

    fn add_file(&mut self, line: &MapsLine<'_>) {
        let path = String::from_utf8_lossy(line.path);
        let kept = path.strip_suffix(" (deleted)");
        let is_deleted = kept.is_some();
        let path = kept.unwrap_or(&path);
        let file = FileNumber {
            device: line.device,
            inode: line.inode,
        };
        let report = match open_mapped(self.pid, (line.start, line.end), file, path) {
            Ok((opened, reader)) => CodeReport::of_file(&opened, path, &self.root, reader),
            Err(_) => Some(CodeReport {
                path: path.to_owned(),
                causes: vec![match is_deleted {
                    true => FrameCause::DeletedUnreadable,
                    false => FrameCause::Unreadable,
                }],
                ..CodeReport::default()
            }),
        };
        match report {
            Some(report) => self.code.push(CodeReport {
                is_deleted,
                ..report
            }),
            None => self.has_compiled_code = true,
        }
    }

    fn report(
        mut self,
        sampled: Option<SampledFrames>,
        not_sampled: String,
        asks_debuginfod: bool,
    ) -> FrameReport {
        let paths: Vec<&str> = std::iter::once(self.program.as_str())
            .chain(self.code.iter().map(|code| code.path.as_str()))
            .collect();
        let runtime = runtimes::runtime_of(&paths);
        self.add_compiled_code(runtime, sampled.as_ref());
        self.add_kernel(sampled.as_ref());
        if let Some(sampled) = &sampled {
            self.count(sampled);
        }
        for code in &mut self.code {
            let all_named = sampled.is_some() && code.frames > 0 && code.unnamed_frames == 0;
            // What was sampled and has all names, from debuginfod or by luck, is no problem.
            code.causes
                .retain(|cause| *cause != FrameCause::Stripped || !all_named);
            if asks_debuginfod && code.unnamed_frames > 0 {
                let stripped = code
                    .causes
                    .iter_mut()
                    .filter(|cause| **cause == FrameCause::Stripped);
                stripped.for_each(|cause| *cause = FrameCause::NotAtDebuginfod);
            }
        }
        self.explain(runtime.unwrap_or(&runtimes::UNKNOWN));
        self.code.sort_by(|left, right| {
            let weight = |code: &CodeReport| {
                (
                    code.unnamed_frames + code.short_stacks,
                    code.problems.len(),
                    code.frames,
                )
            };
            weight(right)
                .cmp(&weight(left))
                .then_with(|| left.path.cmp(&right.path))
        });
        FrameReport {
            pid: self.pid,
            program: self.program,
            runtime: runtime.map_or_else(String::new, |runtime| runtime.name.to_owned()),
            sampled,
            not_sampled,
            code: self.code,
        }
    }

    /// An entry for all code that was compiled at run time, or that an interpreter runs.
    fn add_compiled_code(&mut self, runtime: Option<&Runtime>, sampled: Option<&SampledFrames>) {
        let is_sampled = sampled.is_some_and(|sampled| sampled.code.contains_key(""));
        let is_interpreted = runtime.is_some_and(|runtime| runtime.is_interpreter);
        if !self.has_compiled_code && !is_sampled && !is_interpreted {
            return;
        }
        let is_compiled = self.has_compiled_code || is_sampled;
        let path = if is_compiled { COMPILED } else { INTERPRETED };
        let mut code = CodeReport {
            path: path.to_owned(),
            unwound_by: vec!["frame_pointers"],
            ..CodeReport::default()
        };
        match self.perf_map {
            PerfMap::There => code.named_by.push("perf_map"),
            PerfMap::Refused(..) => code.causes.push(FrameCause::NamesRefused),
            PerfMap::Missing if is_interpreted => code.causes.push(FrameCause::Interpreted),
            PerfMap::Missing => code.causes.push(FrameCause::CompiledWithoutNames),
        }
        let flag = runtime.and_then(|runtime| runtime.frame_pointers);
        if let Some((flag, _)) = flag
            && !self.has_argument(flag)
        {
            code.causes.push(FrameCause::CompiledWithoutFramePointers);
        }
        self.code.push(code);
    }

    /// An entry for the kernel, where most of its frames have no names: of some code without a symbol it has a few.
    fn add_kernel(&mut self, sampled: Option<&SampledFrames>) {
        let counts = sampled.and_then(|sampled| sampled.code.get(KERNEL));
        if counts.is_some_and(|counts| counts.unnamed_frames * 2 > counts.frames) {
            self.code.push(CodeReport {
                path: KERNEL.to_owned(),
                causes: vec![FrameCause::KernelHidden],
                ..CodeReport::default()
            });
        }
    }

    /// Whether the process was started with `flag`: in its arguments, or in its environment, where Java looks too.
    fn has_argument(&self, flag: &str) -> bool {
        let is_in_environment = || {
            let environment = ProcessEnvironment::read(Path::new(&format!("/proc/{}", self.pid)));
            environment.is_ok_and(|it| it.may_have(flag.as_bytes()))
        };
        self.arguments.iter().any(|argument| argument == flag) || is_in_environment()
    }

    fn count(&mut self, sampled: &SampledFrames) {
        for code in &mut self.code {
            let path = if code.path == COMPILED {
                ""
            } else {
                code.path.as_str()
            };
            if let Some(counts) = sampled.code.get(path) {
                code.frames = counts.frames;
                code.unnamed_frames = counts.unnamed_frames;
            }
            let ends = sampled
                .short_stacks
                .iter()
                .filter(|short| short.mapping == path);
            code.short_stacks = ends.map(|short| short.samples).sum();
        }
    }

    fn explain(&mut self, runtime: &Runtime) {
        let is_stripped = |cause: &FrameCause| {
            matches!(cause, FrameCause::Stripped | FrameCause::NotAtDebuginfod)
        };
        let stripped = self
            .code
            .iter()
            .filter(|code| code.causes.iter().any(is_stripped));
        let files: Vec<&str> = stripped.map(|code| code.path.as_str()).collect();
        let packages = DebugPackages::of(&self.root, &files);
        let pid = self.pid.to_string();
        let names = filled(runtime.names, &[("{pid}", pid.as_str())]);
        let (map, refusal) = match &self.perf_map {
            PerfMap::Refused(path, refusal) => (path.display().to_string(), refusal.to_string()),
            PerfMap::There | PerfMap::Missing => (format!("/tmp/perf-{pid}.map"), String::new()),
        };
        for code in &mut self.code {
            let install = packages.install(&code.path);
            let path = quoted(&code.path);
            // That of Go is any text.
            let build_id = quoted(&code.build_id);
            let known = [
                ("{names}", names.as_str()),
                (
                    "{frame_pointers}",
                    runtime.frame_pointers.map_or("", |(_, remedy)| remedy),
                ),
                ("{install}", install.as_str()),
                ("{debuginfod}", packages.server()),
                ("{debug_file}", code.debug_file_place.as_str()),
                ("{build_id}", build_id.as_str()),
                ("{path}", path.as_str()),
                ("{map}", map.as_str()),
                ("{refusal}", refusal.as_str()),
            ];
            let problems = code.causes.iter().map(|cause| {
                let explanation = cause.explanation();
                Problem {
                    cause: explanation.name,
                    meaning: filled(explanation.meaning, &known),
                    remedy: filled(explanation.remedy, &known),
                }
            });
            code.problems = problems.collect();
        }
    }
}

fn perf_map_of(pid: u32) -> PerfMap {
    let mut reader = PerfMapReader::new(Path::new(&format!("/proc/{pid}")));
    match reader.refresh() {
        Err(SymbolError::Refused { path, refusal }) => {
            let inside = path.strip_prefix("/").unwrap_or(&path);
            let path = Path::new(&format!("/proc/{pid}/root")).join(inside);
            PerfMap::Refused(path, refusal)
        }
        Ok(_) if !reader.map().is_empty() => PerfMap::There,
        Ok(_) | Err(_) => PerfMap::Missing,
    }
}
