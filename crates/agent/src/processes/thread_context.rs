//! Where the threads of a process tell of the span that they work on: a thread-local pointer that a program
//! or a library exports, of OpenTelemetry (OTEP 4947), Elastic or custom-labels, or the pointer to a thread's
//! goroutine.

use candela_ebpf::BlockVector;
use candela_ebpf::ContextFormat;
use candela_ebpf::ThreadVariable;
use candela_ebpf::TraceSource;
use candela_symbols::ObjectFile;
use candela_symbols::ThreadLocalAccess;

use crate::processes::mappings::Code;
use crate::processes::mappings::Mappings;
use crate::processes::memory::ProcessMemory;

/// The names of pointers.
const EXPORTED: [(&str, ContextFormat); 3] = [
    ("otel_thread_ctx_v1", ContextFormat::OpenTelemetry),
    (
        "elastic_apm_profiling_correlation_tls_v1",
        ContextFormat::Elastic,
    ),
    ("custom_labels_current_set", ContextFormat::CustomLabels),
];

/// The variable in which custom-labels tells its layout, and the layout that is known.
const CUSTOM_LABELS_VERSION: (&str, u32) = ("custom_labels_abi_version", 1);

/// Distances and offsets beyond this are no such: what a slot holds before the dynamic linker was there.
const LARGEST_OFFSET: u64 = 1 << 30;

/// More modules than any process has.
const MOST_MODULES: u64 = 1 << 16;

/// First and longest time between two attempts to read slots that the dynamic linker has not filled yet.
/// It does so within a millisecond or never.
const FIRST_DELAY_NS: u64 = 1_000_000;
const LONGEST_DELAY_NS: u64 = 8_000_000_000;

/// What an object has of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContextAccess {
    access: ThreadLocalAccess,
    format: ContextFormat,
}

/// What is known of the pointer of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadContext {
    /// Nothing in the process exports it.
    Absent,
    /// Something does, but the dynamic linker has not said yet where it lies.
    Unresolved,
    /// It lies there.
    At(TraceSource),
}

/// When to look again for what a process has not told yet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ContextWait {
    not_before_ns: u64,
    delay_ns: u64,
}

// === impl ContextAccess ===

impl ContextAccess {
    /// The pointer that an object has.
    pub(crate) fn of(object: &ObjectFile) -> Option<Self> {
        let exported = EXPORTED.into_iter().find_map(|(name, format)| {
            let access = object.thread_local(name)?;
            let (version, known) = CUSTOM_LABELS_VERSION;
            let is_known = format != ContextFormat::CustomLabels
                || object.exported_number(version) == Some(known);
            is_known.then_some(Self { access, format })
        });
        let of_go = || {
            let goroutines = object.goroutines()?;
            Some(Self {
                access: ThreadLocalAccess::Distance(goroutines.distance),
                format: ContextFormat::Goroutine {
                    current_offset: goroutines.current_offset,
                    labels_offset: goroutines.labels_offset,
                    labels_are_map: goroutines.labels_are_map,
                },
            })
        };
        exported.or_else(of_go)
    }
}

// === impl ContextWait ===

impl ContextWait {
    /// Whether it is time; if so, the next time is twice as far away.
    pub(crate) fn try_now(&mut self, now_ns: u64) -> bool {
        if now_ns < self.not_before_ns {
            return false;
        }
        self.delay_ns = (self.delay_ns * 2).clamp(FIRST_DELAY_NS, LONGEST_DELAY_NS);
        self.not_before_ns = now_ns + self.delay_ns;
        true
    }
}

/// Looks for the pointer of a process whose objects are all described. The first object that exports it
/// and says where it lies counts; a program stands before its libraries.
pub(crate) fn find_thread_context(pid: u32, mappings: &Mappings) -> ThreadContext {
    let exporting: Vec<_> = mappings
        .iter()
        .filter_map(|mapping| {
            let Code::Object(object) = &mapping.code else {
                return None;
            };
            let description = object.description()??;
            let access = description.thread_context?;
            let length = mapping.end - mapping.start;
            let bias = description.bias(mapping.start, length, mapping.file_offset)?;
            Some((access, bias))
        })
        .collect();
    if exporting.is_empty() {
        return ThreadContext::Absent;
    }
    let Ok(memory) = ProcessMemory::open(pid) else {
        return ThreadContext::Unresolved;
    };
    let read = |address| {
        let mut word = [0; 8];
        let is_read = memory.read_exact(address, &mut word).is_ok();
        is_read.then(|| u64::from_le_bytes(word))
    };
    let vector = block_vector(mappings);
    let found = exporting.into_iter().find_map(|(found, bias)| {
        let variable = resolve(found.access, bias, vector, read)?;
        Some(TraceSource {
            variable,
            format: found.format,
        })
    });
    found.map_or(ThreadContext::Unresolved, ThreadContext::At)
}

/// musl's dynamic linker is its library, `libc.so` where it lies beside another. That of the GNU C library is
/// `libc.so.6` or `libc-2.31.so`.
fn block_vector(mappings: &Mappings) -> BlockVector {
    let is_musl = mappings.iter().any(|mapping| match &mapping.code {
        Code::Object(object) => {
            let name = object.path.rsplit('/').next().unwrap_or_default();
            name == "libc.so" || name.starts_with("ld-musl-") || name.starts_with("libc.musl-")
        }
        Code::Anonymous => false,
    });
    match is_musl {
        true => BlockVector::Musl,
        false => BlockVector::Glibc,
    }
}

/// Reads what the dynamic linker has written; `None` before it has.
fn resolve(
    access: ThreadLocalAccess,
    bias: u64,
    vector: BlockVector,
    read: impl Fn(u64) -> Option<u64>,
) -> Option<ThreadVariable> {
    let in_module = |module: u64, offset: u64| {
        let is_there = (1..=MOST_MODULES).contains(&module);
        (is_there && is_plausible(offset)).then_some(ThreadVariable::InModule {
            module: u32::try_from(module).ok()?,
            offset,
            vector,
        })
    };
    match access {
        ThreadLocalAccess::Distance(distance) => Some(ThreadVariable::Fixed(distance)),
        ThreadLocalAccess::DistanceSlot(slot) => at_distance(read(slot.wrapping_add(bias))?),
        ThreadLocalAccess::IndexSlot { slot, offset } => {
            let slot = slot.wrapping_add(bias);
            let offset = match offset {
                Some(offset) => offset,
                None => read(slot.wrapping_add(8))?,
            };
            in_module(read(slot)?, offset)
        }
        ThreadLocalAccess::DescriptorSlot(slot) => {
            let slot = slot.wrapping_add(bias);
            let (function, argument) = (read(slot)?, read(slot.wrapping_add(8))?);
            if function == 0 || argument == 0 {
                return None;
            }
            if argument.cast_signed() < 0 {
                return at_distance(argument);
            }
            in_module(read(argument)?, read(argument.wrapping_add(8))?)
        }
    }
}

fn at_distance(distance: u64) -> Option<ThreadVariable> {
    let below = distance.wrapping_neg();
    (below != 0 && is_plausible(below)).then_some(ThreadVariable::Fixed(distance.cast_signed()))
}

/// Pointers are aligned.
fn is_plausible(offset: u64) -> bool {
    offset < LARGEST_OFFSET && offset.is_multiple_of(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BIAS: u64 = 0x7f00_0000_0000;
    const SLOT: u64 = 0x3fd0;

    fn resolve_in(access: ThreadLocalAccess, memory: &[(u64, u64)]) -> Option<ThreadVariable> {
        resolve(access, BIAS, BlockVector::Glibc, |address| {
            let mut words = memory.iter().filter(|(at, _)| *at == address);
            words.next().map(|(_, word)| *word)
        })
    }

    fn below(distance: u64) -> u64 {
        distance.wrapping_neg()
    }

    fn in_module(module: u32, offset: u64) -> ThreadVariable {
        ThreadVariable::InModule {
            module,
            offset,
            vector: BlockVector::Glibc,
        }
    }

    #[test]
    fn slots_lead_to_the_variable() {
        let at = BIAS + SLOT;
        let descriptor = ThreadLocalAccess::DescriptorSlot(SLOT);
        let index = |offset| ThreadLocalAccess::IndexSlot { slot: SLOT, offset };
        let cases = [
            (
                ThreadLocalAccess::Distance(-8),
                vec![],
                ThreadVariable::Fixed(-8),
            ),
            (
                ThreadLocalAccess::DistanceSlot(SLOT),
                vec![(at, below(48))],
                ThreadVariable::Fixed(-48),
            ),
            (index(None), vec![(at, 3), (at + 8, 16)], in_module(3, 16)),
            (
                index(Some(24)),
                vec![(at, 3), (at + 8, 16)],
                in_module(3, 24),
            ),
            (
                descriptor,
                vec![(at, 0x40), (at + 8, below(16))],
                ThreadVariable::Fixed(-16),
            ),
            (
                descriptor,
                vec![(at, 0x40), (at + 8, 0x50_000), (0x50_000, 2), (0x50_008, 8)],
                in_module(2, 8),
            ),
        ];
        for (access, memory, expected) in cases {
            assert_eq!(resolve_in(access, &memory), Some(expected), "{access:?}");
        }
    }

    #[test]
    fn what_the_dynamic_linker_has_not_written_leads_nowhere() {
        let at = BIAS + SLOT;
        let descriptor = ThreadLocalAccess::DescriptorSlot(SLOT);
        let index = ThreadLocalAccess::IndexSlot {
            slot: SLOT,
            offset: None,
        };
        let cases = [
            (ThreadLocalAccess::DistanceSlot(SLOT), vec![(at, 0)]),
            (ThreadLocalAccess::DistanceSlot(SLOT), vec![(at, 8)]),
            (ThreadLocalAccess::DistanceSlot(SLOT), vec![]),
            (index, vec![(at, 0), (at + 8, 0)]),
            (descriptor, vec![(at, 0), (at + 8, 0)]),
            // Linked lazily: the argument is the relocation, a place and a number of a symbol.
            (
                descriptor,
                vec![
                    (at, 0x40),
                    (at + 8, 0x50_000),
                    (0x50_000, SLOT),
                    (0x50_008, 5 << 32 | 36),
                ],
            ),
        ];
        for (access, memory) in cases {
            assert_eq!(resolve_in(access, &memory), None, "{access:?}");
        }
    }

    #[test]
    fn waits_become_longer() {
        let mut wait = ContextWait::default();
        let attempts = (0..60_000).filter(|millisecond| wait.try_now(millisecond * 1_000_000));
        let attempts: Vec<u64> = attempts.collect();
        assert_eq!(attempts[..4], [0, 1, 3, 7]);
        assert!(attempts.len() < 24, "{attempts:?}");
    }
}
