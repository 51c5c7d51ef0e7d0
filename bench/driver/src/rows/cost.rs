//! What the agent costs.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::Figure;
use crate::host::Bench;
use crate::overhead::Contestant;
use crate::overhead::Turns;
use crate::overhead::Workload;
use crate::pair::Pair;
use crate::process::BpfStatistics;
use crate::process::Program;
use crate::process::compile;
use crate::process::measure_for;
use crate::process::shares;

const MIB: f64 = 1024.0 * 1024.0;

/// A1: CPU time of the agent's process plus the run time of its BPF programs, over the wall time,
/// with as many burning processes as there are cores, none with frame pointers.
pub(crate) fn cpu(bench: &Bench) -> Result<Figure, String> {
    const WARM_UP: Duration = Duration::from_secs(20);
    const PERIOD: Duration = Duration::from_secs(60);
    let folder = bench.folder("a1")?;
    let mut burner = shares(bench.root(), &folder)?;
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let mut burners: Vec<Program> = (0..cores)
        .map(|_| Program::start(&mut burner))
        .collect::<Result<_, _>>()?;
    let mut pair = Pair::start(bench, &folder, "99", &[])?;
    let _stats = BpfStatistics::enable()?;
    measure_for(WARM_UP);
    let agent = &pair.agent;
    let before = (agent.cpu_seconds()?, agent.bpf_sum("run_time_ns")?);
    let forks_before = forks_of_host()?;
    measure_for(PERIOD);
    let after = (agent.cpu_seconds()?, agent.bpf_sum("run_time_ns")?);
    // Each new program is looked at: a host that is not quiet makes the agent work.
    let forks = forks_of_host()?.saturating_sub(forks_before);
    pair.has_sampled(&mut burners)?;
    let process = (after.0 - before.0) / PERIOD.as_secs_f64() * 100.0;
    let programs = (after.1 - before.1) as f64 / 1e9 / PERIOD.as_secs_f64() * 100.0;
    let total = process + programs;
    drop(pair);
    let peer = peer_cost(bench, PERIOD)?;
    Ok(Figure {
        text: format!(
            "{total:.2} % of one core ({process:.2} % process, {programs:.2} % in BPF), {forks} forks on the host meanwhile; {peer}"
        ),
        is_met: Some(total <= 0.5),
    })
}

/// Processes and threads that this host has begun since it started, `processes` of proc_stat(5).
fn forks_of_host() -> Result<u64, String> {
    let text = fs::read_to_string("/proc/stat").map_err(|error| format!("/proc/stat: {error}"))?;
    let count = text
        .lines()
        .find_map(|line| line.strip_prefix("processes "));
    count
        .and_then(|count| count.trim().parse().ok())
        .ok_or_else(|| "/proc/stat has no count of processes".to_owned())
}

/// The same for a program given by `--peer 'PROGRAM ARGUMENT…'`, under the same load.
fn peer_cost(bench: &Bench, period: Duration) -> Result<String, String> {
    let mut words = bench.peer().unwrap_or_default().split_whitespace();
    let Some(program) = words.next() else {
        return Ok("peer not run".to_owned());
    };
    let mut peer = Program::start(Command::new(program).args(words))?;
    measure_for(period / 4);
    let before = (peer.cpu_seconds()?, peer.bpf_sum("run_time_ns")?);
    measure_for(period);
    let after = (peer.cpu_seconds()?, peer.bpf_sum("run_time_ns")?);
    peer.still_runs()?;
    let seconds = (after.0 - before.0) + (after.1 - before.1) as f64 / 1e9;
    let name = Path::new(program).file_name().unwrap_or_default();
    Ok(format!(
        "{} {:.2} %",
        name.display(),
        seconds / period.as_secs_f64() * 100.0
    ))
}

/// A2: what the agent takes with four kinds: beside programs that only compute, and how much longer each switch of
/// a thread, lock taken and page fault takes on top. Told beside it: the same by CPU time and the kernel's statistics of
/// BPF programs, which lengthen each run of one.
pub(crate) fn four_kinds(bench: &Bench) -> Result<Figure, String> {
    let workloads = [Workload::SWITCHES, Workload::LOCKS, Workload::FAULTS];
    let mut turns = Turns::new(bench, &workloads)?;
    turns.busy = Duration::from_secs(60);
    let contestants = [
        Contestant::nothing(),
        Contestant::agent(Contestant::FOUR_KINDS, 19),
    ];
    let outcomes = turns.run(&contestants, 5, &mut |_| ())?;
    let [nothing, outcome] = outcomes.as_slice() else {
        return Err("nothing was measured".to_owned());
    };
    let (&[switch_ns, lock_ns, fault_ns], &[switch_cpu_ns, lock_cpu_ns, fault_cpu_ns]) = (
        outcome.delays_ns(nothing).as_slice(),
        outcome.operation_ns.as_slice(),
    ) else {
        return Err("not all of the work was done".to_owned());
    };
    Ok(Figure {
        text: format!(
            "{:.2} % of one core, {switch_ns:.0} ns per switch, {lock_ns:.0} ns per lock taken, {fault_ns:.0} ns per fault \
             by the clock; by statistics {switch_cpu_ns:.0}, {lock_cpu_ns:.0} and {fault_cpu_ns:.0} ns",
            outcome.busy_share * 100.0
        ),
        is_met: Some(outcome.busy_share <= 0.003 && switch_ns <= 77.0 && lock_ns <= 190.0),
    })
}

/// A4: how much longer programs take beside an agent that samples everything, and, told beside it, what the library
/// adds in programs that opt in to have their allocations sampled.
pub(crate) fn slow_down(bench: &Bench) -> Result<Figure, String> {
    let workloads = [Workload::CALLS, Workload::ALLOCATIONS];
    let mut turns = Turns::new(bench, &workloads)?;
    turns.with_costs = false;
    let contestants = [
        Contestant::nothing(),
        Contestant::everything(),
        Contestant::everything_and_alloc(),
    ];
    let outcomes = turns.run(&contestants, 11, &mut |_| ())?;
    let [nothing, everything, opted_in] = outcomes.as_slice() else {
        return Err("nothing was measured".to_owned());
    };
    let slow_downs = everything.slow_downs(nothing);
    let (&[calls, allocations], &[opted_calls, opted_allocations]) = (
        slow_downs.as_slice(),
        opted_in.slow_downs(nothing).as_slice(),
    ) else {
        return Err("not all of the work was done".to_owned());
    };
    Ok(Figure {
        text: format!(
            "system calls {calls}, allocations {allocations}; programs that opt in to alloc {opted_calls}, \
             {opted_allocations}"
        ),
        is_met: Some(slow_downs.iter().all(|slow_down| slow_down.median <= 0.01)),
    })
}

/// A3: resident memory of the agent plus kernel memory of its maps, while 50 processes run code of
/// 200 different shared libraries of this system.
pub(crate) fn memory(bench: &Bench) -> Result<Figure, String> {
    let folder = bench.folder("a3")?;
    let loader = compile(
        bench.root(),
        &folder,
        "bench/driver/programs/loader.c",
        &["gcc", "-O2", "-fomit-frame-pointer"],
    )?;
    let libraries = shared_libraries(200);
    if libraries.len() < 200 {
        return Err(format!(
            "only {} shared libraries on this system",
            libraries.len()
        ));
    }
    let mut pair = Pair::start(bench, &folder, "99", &[])?;
    // Each process loads a window of the list, so that all 200 are mapped and most of them by several.
    let mut programs: Vec<Program> = (0..50)
        .map(|process| {
            let mapped = (0..12).map(|offset| &libraries[(process * 4 + offset) % libraries.len()]);
            Program::start(Command::new(&loader).args(mapped))
        })
        .collect::<Result<_, _>>()?;
    measure_for(Duration::from_secs(45));
    let resident = pair.agent.resident_bytes()? as f64 / MIB;
    let maps = pair.agent.bpf_sum("memlock")? as f64 / MIB;
    pair.has_sampled(&mut programs)?;
    let total = resident + maps;
    Ok(Figure {
        text: format!("{total:.1} MiB ({resident:.1} resident, {maps:.1} BPF maps)"),
        is_met: Some(total <= 80.0),
    })
}

/// Libraries of this system, the largest first left out of none: whatever a host has is the load.
fn shared_libraries(count: usize) -> Vec<PathBuf> {
    let entries = fs::read_dir("/usr/lib/x86_64-linux-gnu")
        .into_iter()
        .flatten();
    let mut libraries: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().contains(".so"))
        // Sanitizers end a program that loads them late.
        .filter(|path| !path.to_string_lossy().contains("san.so"))
        // One path a file: versions are symbolic links to it.
        .filter(|path| {
            path.symlink_metadata()
                .is_ok_and(|metadata| metadata.is_file())
        })
        .collect();
    libraries.sort();
    libraries.truncate(count);
    libraries
}
