//! Loading the BPF object: sizes, settings, and what a refusal means.

use crate::bpf_map::BpfMap;
use crate::host;
use crate::options::{Options, Target};
use crate::refusal::{HostFacts, explained};
use crate::{Error, options};
use libbpf_rs::{MapCore, MapType, Object, ObjectBuilder, OpenObject, PrintLevel};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sampler.bpf.o"));

const BTF_PATH: &str = "/sys/kernel/btf/vmlinux";
const LIFE_RING_BYTES: u32 = 256 * 1024;

/// The loaded programs and the sizes they were loaded with.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) object: Object,
    pub(crate) sample_ring_bytes: u32,
    pub(crate) life_ring_bytes: u32,
}

/// `struct settings` of bpf/maps.h: six u32 and two u64.
fn settings(options: &Options) -> Vec<u8> {
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
    let reserved = 0;
    let words: [u32; 6] = [
        filter_pids,
        filter_cgroup,
        follow_forks,
        excluded_pid,
        options.stack_pages(),
        reserved,
    ];
    let double_words: [u64; 2] = [copy_cost_ns, copy_credit_limit_ns];
    let words = words.iter().flat_map(|word| word.to_le_bytes());
    words
        .chain(double_words.iter().flat_map(|word| word.to_le_bytes()))
        .collect()
}

/// Opens, sizes and loads the object.
///
/// # Errors
/// [`Error::NoBtf`], [`Error::MissingCapability`], [`Error::KernelTooOld`], [`Error::Lockdown`],
/// [`Error::NoBpf`], [`Error::MemoryLock`], [`Error::Load`].
pub(crate) fn load(options: &Options) -> Result<Loaded, Error> {
    if !host::is_there(BTF_PATH) {
        return Err(Error::NoBtf { path: BTF_PATH });
    }
    let messages = MessageCapture::start();
    let cpus = libbpf_rs::num_possible_cpus().map_err(|source| refusal(source, &messages))?;
    let cpus = u32::try_from(cpus).unwrap_or(u32::MAX);
    let sample_ring_bytes = options.ring_bytes(cpus);
    let mut open = ObjectBuilder::default()
        .open_memory(OBJECT)
        .map_err(|source| refusal(source, &messages))?;
    size_maps(&mut open, options, cpus, sample_ring_bytes)
        .map_err(|source| refusal(source, &messages))?;
    let object = open.load().map_err(|source| refusal(source, &messages))?;
    Ok(Loaded {
        object,
        sample_ring_bytes,
        life_ring_bytes: LIFE_RING_BYTES,
    })
}

fn size_maps(
    open: &mut OpenObject,
    options: &Options,
    cpus: u32,
    sample_ring_bytes: u32,
) -> libbpf_rs::Result<()> {
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        match name.as_str() {
            "scratch_areas" => map.set_max_entries(cpus)?,
            "processes" => map.set_max_entries(options.max_processes.max(1))?,
            "regions" => map.set_max_entries(options.max_regions.max(1))?,
            "tables" | "table_last_used" => map.set_max_entries(options.max_tables.max(1))?,
            "samples" => map.set_max_entries(sample_ring_bytes)?,
            "life" => map.set_max_entries(LIFE_RING_BYTES)?,
            name if name.ends_with(".settings") => map.set_initial_value(&settings(options))?,
            _ => {}
        }
        debug_assert!(
            map.map_type() != MapType::RingBuf || map.max_entries() >= options::PAGE_BYTES
        );
    }
    Ok(())
}

/// The map `name` of the object.
///
/// # Errors
/// [`Error::Map`] when descriptors run out.
pub(crate) fn map(object: &Object, name: &'static str) -> Result<BpfMap, Error> {
    let found = object.maps().find(|map| map.name() == OsStr::new(name));
    let map = found.expect("bpf/maps.h defines each map that is asked for by name");
    BpfMap::duplicate(name, map.as_fd())
}

fn refusal(source: libbpf_rs::Error, messages: &MessageCapture) -> Error {
    explained(source, messages.text(), &HostFacts::read())
}

/// libbpf's messages while we load, for the error text. libbpf has one callback per process.
struct MessageCapture {
    previous: Option<(PrintLevel, libbpf_rs::PrintCallback)>,
}

static MESSAGES: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());
const KEPT_MESSAGES: usize = 12;

impl MessageCapture {
    fn start() -> MessageCapture {
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
