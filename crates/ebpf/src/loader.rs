//! Loading the BPF object: sizes, settings, and what a refusal means.

use crate::allocations::{self, FunctionLink};
use crate::bpf_map::BpfMap;
use crate::host;
use crate::options::{LONGEST_OFF_CPU_MEAN_NS, Options, Target, Wakers};
use crate::pace::Pace;
use crate::refusal::{HostFacts, explained};
use crate::{Error, clock, cost, explicit, options, tracepoints};
use libbpf_rs::btf::types::Func;
use libbpf_rs::{
    Link, MapCore, MapType, Object, ObjectBuilder, OpenObject, PrintLevel, ProgramAttachType,
    ProgramMut,
};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sampler.bpf.o"));

pub(crate) const BTF_PATH: &str = "/sys/kernel/btf/vmlinux";
/// The section of bpf/maps.h with what can be changed while the programs run, which is a map.
pub(crate) const PACE: &str = ".data.pace";

const LIFE_RING_BYTES: u32 = 256 * 1024;

/// The loaded programs and the sizes they were loaded with.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) object: Object,
    /// Whether the kernel calls when a thread returns to user space.
    pub(crate) defers: bool,
    /// How the programs of allocations are attached, where they are wanted.
    pub(crate) function_link: FunctionLink,
    /// Whether programs count how often they run, because the kernel does not measure them for us.
    pub(crate) counts_runs: bool,
    pub(crate) sample_ring_bytes: u32,
    pub(crate) life_ring_bytes: u32,
}

/// Programs and maps that cost nothing where nobody asks for their samples.
struct Part {
    is_wanted: fn(&Options) -> bool,
    programs: &'static [&'static str],
    maps: &'static [&'static str],
}

/// Programs of tracepoints, on their own from when they are attached.
const PLAIN_PARTS: [Part; 4] = [
    Part {
        is_wanted: |options| options.growth_mean_bytes.is_some(),
        programs: &["growth_begin", "growth_end"],
        maps: &["growth_starts"],
    },
    Part {
        is_wanted: |options| options.kernel_lock_mean_ns.is_some(),
        programs: &["kernel_lock_begin", "kernel_lock_end"],
        maps: &["contentions"],
    },
    Part {
        is_wanted: |options| options.request_interval.is_some(),
        programs: &["block_io_begin", "block_io_end"],
        maps: &["block_requests"],
    },
    Part {
        is_wanted: |options| {
            options.off_cpu_mean_ns.is_some() && options.waits.wakers != Wakers::Untold
        },
        programs: &["off_cpu_wake"],
        maps: &[],
    },
];

const PARTS: [Part; 6] = [
    Part {
        is_wanted: |options| options.on_cpu,
        programs: &["sample_cpu"],
        maps: &[],
    },
    Part {
        is_wanted: |options| !options.events.is_empty(),
        programs: &[
            "explicit_tracepoint",
            "explicit_function",
            "explicit_counter",
        ],
        maps: &[],
    },
    Part {
        is_wanted: Options::has_events,
        programs: &[],
        maps: &["event_nesting"],
    },
    Part {
        is_wanted: |options| options.allocations,
        programs: &[allocations::SAMPLED, allocations::FREED],
        maps: &["told_allocations"],
    },
    Part {
        is_wanted: |options| options.off_cpu_mean_ns.is_some(),
        programs: &[
            "off_cpu_switch",
            "off_cpu_visit",
            "off_cpu_call_ends",
            "off_cpu_exec",
        ],
        maps: &["off_cpu_times", "deferred_samples"],
    },
    Part {
        is_wanted: |options| options.fault_interval.is_some(),
        programs: &[
            "fault_in_user",
            "fault_in_kernel",
            "fault_exit",
            "fault_visit",
        ],
        maps: &["fault_progresses"],
    },
];

/// What stands in for [`DEFERRALS`] where the kernel has neither.
pub(crate) const STAND_INS: [&str; 2] = ["off_cpu_call_ends", "off_cpu_exec"];

/// What defers a sample until its thread returns to user space: on newer kernels, and on Linux 6.18.
const DEFERRALS: [&str; 2] = [
    "bpf_task_work_schedule_resume",
    "bpf_task_work_schedule_resume_impl",
];

/// `struct settings` of bpf/maps.h: ten u32 and twelve u64.
fn settings(options: &Options, cpus: u32, counts_runs: bool) -> Result<Vec<u8>, Error> {
    let (filter_pids, follow_forks) = match options.target {
        Target::Processes { follow_forks, .. } => (1, u32::from(follow_forks)),
        Target::Host | Target::Cgroup(_) => (0, 0),
    };
    let filter_cgroup = u32::from(matches!(options.target, Target::Cgroup(_)));
    // No process has id 0 here: the idle task is never sampled.
    let excluded_pid = if options.exclude_self {
        std::process::id()
    } else {
        0
    };
    let copy_cost_ns = match options.stack_copies_per_second {
        0 => 0,
        per_second => 1_000_000_000 / u64::from(per_second),
    };
    let copy_credit_limit_ns = copy_cost_ns.saturating_mul(options.stack_copy_burst.max(1).into());
    let target_cgroup_id = match &options.target {
        Target::Cgroup(path) => host::inode(path).map_err(|source| Error::Cgroup {
            path: path.clone(),
            source,
        })?,
        Target::Host | Target::Processes { .. } => 0,
    };
    let words: [u32; 10] = [
        filter_pids,
        filter_cgroup,
        follow_forks,
        excluded_pid,
        options.stack_pages(),
        cpus,
        u32::from(options.waits.all),
        u32::from(options.waits.locks),
        u32::from(options.waits.run_queues),
        options.waits.wakers.to_kernel(),
    ];
    // The kernel's side multiplies it by a number of 32 bits.
    let growth_mean = |end: fn(&RangeInclusive<u64>) -> u64| {
        let mean_bytes = options.growth_mean_bytes.as_ref().map_or(0, end);
        mean_bytes.min(u32::MAX.into())
    };
    let double_words: [u64; 13] = [
        copy_cost_ns,
        copy_credit_limit_ns,
        options.period_ns()?,
        target_cgroup_id,
        options.fault_interval.unwrap_or(1).max(1).into(),
        options
            .kernel_lock_mean_ns
            .unwrap_or_default()
            .min(LONGEST_OFF_CPU_MEAN_NS),
        growth_mean(|means| *means.start()),
        growth_mean(|means| *means.end()),
        options.request_interval.unwrap_or(1).max(1).into(),
        clock::boottime_ns(),
        explicit::first_tracepoint_cookie(&options.events)?,
        options.waits.least_ns,
        u64::from(counts_runs),
    ];
    let words = words.iter().flat_map(|word| word.to_le_bytes());
    let double_words = double_words.iter().flat_map(|word| word.to_le_bytes());
    Ok(words.chain(double_words).collect())
}

/// Opens, sizes and loads the object.
///
/// # Errors
/// [`Error::NoBtf`], [`Error::MissingCapability`], [`Error::KernelTooOld`], [`Error::Lockdown`],
/// [`Error::NoBpf`], [`Error::NoTracepoint`], [`Error::MemoryLock`], [`Error::Load`], [`Error::Cgroup`], and what
/// [`Options::period_ns`] refuses.
pub(crate) fn load(options: &Options) -> Result<Loaded, Error> {
    if !host::is_there(BTF_PATH) {
        return Err(Error::NoBtf { path: BTF_PATH });
    }
    let defers = options.off_cpu_mean_ns.is_none() || can_defer();
    let function_link = match options.allocations {
        true => FunctionLink::of_host(),
        false => FunctionLink::PerfEvent,
    };
    let messages = MessageCapture::start();
    let cpus = libbpf_rs::num_possible_cpus().map_err(|source| refusal(source, &messages))?;
    let cpus = u32::try_from(cpus).unwrap_or(u32::MAX);
    let sample_ring_bytes = options.ring_bytes(cpus);
    let mut open = ObjectBuilder::default()
        .open_memory(OBJECT)
        .map_err(|source| refusal(source, &messages))?;
    let counts_runs = !cost::can_measure();
    let settings = settings(options, cpus, counts_runs)?;
    choose(&mut open, options, defers, function_link)
        .map_err(|source| refusal(source, &messages))?;
    tracepoints::check(&open)?;
    size_maps(&mut open, options, &settings, cpus, sample_ring_bytes)
        .map_err(|source| refusal(source, &messages))?;
    let object = open.load().map_err(|source| refusal(source, &messages))?;
    Ok(Loaded {
        object,
        defers,
        function_link,
        counts_runs,
        sample_ring_bytes,
        life_ring_bytes: LIFE_RING_BYTES,
    })
}

/// Whether this kernel calls when a thread returns to user space, wherever it waited.
pub(crate) fn can_defer() -> bool {
    let types = libbpf_rs::btf::Btf::from_vmlinux();
    types.is_ok_and(|types| {
        DEFERRALS
            .iter()
            .any(|name| types.type_by_name::<Func<'_>>(name).is_some())
    })
}

/// Opens the object to look at the programs that would be loaded.
pub(crate) fn opened(options: &Options) -> libbpf_rs::Result<OpenObject> {
    let _messages = MessageCapture::start();
    let mut open = ObjectBuilder::default().open_memory(OBJECT)?;
    choose(&mut open, options, can_defer(), FunctionLink::PerfEvent)?;
    Ok(open)
}

/// Leaves out the programs and maps that nobody asks for.
fn choose(
    open: &mut OpenObject,
    options: &Options,
    defers: bool,
    function_link: FunctionLink,
) -> libbpf_rs::Result<()> {
    let is_unwanted = |part: &&Part| !(part.is_wanted)(options);
    let parts = PARTS.iter().chain(&PLAIN_PARTS);
    let unwanted: Vec<&Part> = parts.filter(is_unwanted).collect();
    for mut program in open.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        let is_of = |part: &&Part| part.programs.contains(&name.as_str());
        if unwanted.iter().any(is_of) || (defers && STAND_INS.contains(&name.as_str())) {
            program.set_autoload(false);
        }
        let tells_allocations = [allocations::SAMPLED, allocations::FREED].contains(&name.as_str());
        if tells_allocations && function_link == FunctionLink::Bpf {
            program.set_attach_type(ProgramAttachType::TraceUprobeMulti);
        }
    }
    let maps = unwanted.iter().flat_map(|part| part.maps);
    leave_out(open, &maps.copied().collect::<Vec<_>>())
}

fn leave_out(open: &mut OpenObject, maps: &[&str]) -> libbpf_rs::Result<()> {
    for mut map in open.maps_mut() {
        if maps.contains(&map.name().to_string_lossy().as_ref()) {
            map.set_autocreate(false)?;
        }
    }
    Ok(())
}

fn size_maps(
    open: &mut OpenObject,
    options: &Options,
    settings: &[u8],
    cpus: u32,
    sample_ring_bytes: u32,
) -> libbpf_rs::Result<()> {
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        match name.as_str() {
            // Those of bpf/off_cpu.h, event_area.h and wakers.h: more for each CPU, and that of the iterators.
            "scratch_areas" => {
                let has_wakers = options.waits.wakers == Wakers::Stacks;
                let per_cpu = match (options.off_cpu_mean_ns, options.has_events()) {
                    (Some(_), _) if has_wakers => 5,
                    (None, false) => 1,
                    (Some(_), false) => 2,
                    (_, true) => 4,
                };
                map.set_max_entries(cpus.saturating_mul(per_cpu).saturating_add(1))?;
            }
            "processes" => map.set_max_entries(options.max_processes.max(1))?,
            "regions" => map.set_max_entries(options.max_regions.max(1))?,
            "tables" | "table_last_used" => map.set_max_entries(options.max_tables.max(1))?,
            "samples" => map.set_max_entries(sample_ring_bytes)?,
            "life" => map.set_max_entries(LIFE_RING_BYTES)?,
            name if name.ends_with(".settings") => map.set_initial_value(settings)?,
            PACE => {
                let words = Pace::of(options).within_bounds().to_kernel();
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                map.set_initial_value(&bytes)?;
            }
            _ => {}
        }
        debug_assert!(
            map.map_type() != MapType::RingBuf || map.max_entries() >= options::PAGE_BYTES
        );
    }
    Ok(())
}

/// Attaches the programs that need nothing else.
///
/// # Errors
/// [`Error::Attach`].
pub(crate) fn attach_plain(object: &Object, options: &Options) -> Result<Vec<Link>, Error> {
    let parts = PLAIN_PARTS.iter();
    let wanted = parts.filter(|part| (part.is_wanted)(options));
    let programs = wanted.flat_map(|part| part.programs);
    programs
        .map(|&name| {
            let link = program(object, name).attach_trace();
            link.map_err(|source| Error::Attach {
                program: name,
                source,
            })
        })
        .collect()
}

/// The map `name` of the object.
///
/// # Errors
/// [`Error::Map`] when descriptors run out.
pub(crate) fn map(object: &Object, name: &'static str) -> Result<BpfMap, Error> {
    let found = object.maps().find(|map| map.name() == OsStr::new(name));
    let map = found.expect("bpf defines each map that is asked for by name");
    BpfMap::duplicate(name, map.as_fd())
}

/// The program `name` of the object.
pub(crate) fn program<'a>(object: &'a Object, name: &str) -> ProgramMut<'a> {
    let found = object
        .progs_mut()
        .find(|program| program.name() == OsStr::new(name));
    found.expect("bpf defines each program that is asked for by name")
}

/// What a refusal means, by what libbpf said meanwhile.
pub(crate) fn refusal(source: libbpf_rs::Error, messages: &MessageCapture) -> Error {
    explained(source, &messages.text(), &HostFacts::read())
}

/// libbpf's messages while we load, for the error text. libbpf has one callback per process.
pub(crate) struct MessageCapture {
    previous: Option<(PrintLevel, libbpf_rs::PrintCallback)>,
}

static MESSAGES: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());
const KEPT_MESSAGES: usize = 12;

impl MessageCapture {
    pub(crate) fn start() -> MessageCapture {
        MESSAGES
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        MessageCapture {
            previous: libbpf_rs::set_print(Some((PrintLevel::Info, keep_message))),
        }
    }

    fn text(&self) -> String {
        let messages = MESSAGES.lock().unwrap_or_else(PoisonError::into_inner);
        messages
            .iter()
            .map(|message| message.trim())
            .collect::<Vec<_>>()
            .join("; ")
    }
}

impl Drop for MessageCapture {
    fn drop(&mut self) {
        libbpf_rs::set_print(self.previous.take());
    }
}

fn keep_message(_level: PrintLevel, message: String) {
    tracing::debug!(target: "candela_ebpf::libbpf", "{}", message.trim_end());
    let mut messages = MESSAGES.lock().unwrap_or_else(PoisonError::into_inner);
    if messages.len() == KEPT_MESSAGES {
        messages.pop_front();
    }
    messages.push_back(message);
}
