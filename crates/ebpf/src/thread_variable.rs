//! Where the threads of a process tell what they work on.

/// How to get from a thread's pointer to a variable that each thread of its process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ThreadVariable {
    /// At a fixed distance from the thread pointer, bytes: variables of the program, and of the libraries that
    /// it was started with.
    Fixed(i64),
    /// In the block that each thread has for a module: variables of libraries that were loaded later.
    InModule {
        /// The number that the dynamic linker gave the module.
        module: u32,
        /// From the start of the block, bytes.
        offset: u64,
        /// Where the thread keeps the addresses of its blocks.
        vector: BlockVector,
    },
}

/// What such a variable points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContextFormat {
    /// A record of the OpenTelemetry thread context (OTEP 4947).
    OpenTelemetry,
    /// A record of Elastic's Universal Profiling integration, version 1.
    Elastic,
    /// A set of labels of polarsignals/custom-labels, version 1.
    CustomLabels,
    /// A goroutine (struct g of Go's runtime), whose labels tell. Offsets in bytes.
    Goroutine {
        /// Of `curg` in struct m.
        current_offset: u32,
        /// Of `labels` in struct g.
        labels_offset: u32,
        /// Whether the labels are a hash map, as before Go 1.24, and not a list.
        labels_are_map: bool,
    },
}

/// Where the threads of a process tell what they work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceSource {
    /// A pointer that each of them has.
    pub variable: ThreadVariable,
    /// What it points to.
    pub format: ContextFormat,
}

/// Whose layout a thread's vector of blocks has (`dtv` in both).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockVector {
    /// The GNU C library's: two words for each module, the length before the first.
    Glibc,
    /// musl's: one word for each module, the length in the first.
    Musl,
}

/// `struct thread_variable` of bpf/maps.h.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct ThreadVariableEntry {
    offset: i64,
    module: u32,
    kind: u16,
    format: u16,
    current_offset: u32,
    labels_offset: u32,
}

const KIND_FIXED: u16 = 1;
const KIND_IN_GLIBC_MODULE: u16 = 2;
const KIND_IN_MUSL_MODULE: u16 = 3;

const FORMAT_OPENTELEMETRY: u16 = 0;
const FORMAT_ELASTIC: u16 = 1;
const FORMAT_GOROUTINE: u16 = 2;
const FORMAT_GOROUTINE_MAP: u16 = 3;
const FORMAT_CUSTOM_LABELS: u16 = 4;

// === impl ThreadVariableEntry ===

impl From<TraceSource> for ThreadVariableEntry {
    fn from(source: TraceSource) -> ThreadVariableEntry {
        let (offset, module, kind) = match source.variable {
            ThreadVariable::Fixed(offset) => (offset, 0, KIND_FIXED),
            ThreadVariable::InModule {
                module,
                offset,
                vector,
            } => {
                let kind = match vector {
                    BlockVector::Glibc => KIND_IN_GLIBC_MODULE,
                    BlockVector::Musl => KIND_IN_MUSL_MODULE,
                };
                (offset.cast_signed(), module, kind)
            }
        };
        let (format, current_offset, labels_offset) = match source.format {
            ContextFormat::OpenTelemetry => (FORMAT_OPENTELEMETRY, 0, 0),
            ContextFormat::Elastic => (FORMAT_ELASTIC, 0, 0),
            ContextFormat::CustomLabels => (FORMAT_CUSTOM_LABELS, 0, 0),
            ContextFormat::Goroutine {
                current_offset,
                labels_offset,
                labels_are_map: false,
            } => (FORMAT_GOROUTINE, current_offset, labels_offset),
            ContextFormat::Goroutine {
                current_offset,
                labels_offset,
                labels_are_map: true,
            } => (FORMAT_GOROUTINE_MAP, current_offset, labels_offset),
        };
        ThreadVariableEntry {
            offset,
            module,
            kind,
            format,
            current_offset,
            labels_offset,
        }
    }
}
