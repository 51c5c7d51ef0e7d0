//! The state of the agent's parts.

use serde::Serialize;

/// The state of the source of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SourceStatus {
    /// Samples taken in the kernel.
    pub kernel_samples: u64,
    /// Samples that came with a stack copy.
    pub stack_copies: u64,
    /// CPUs sampled now.
    pub cpus: usize,
    /// Processes whose mappings the kernel has.
    pub kernel_processes: u32,
    /// Their mappings.
    pub kernel_regions: u32,
    /// Processes known now.
    pub processes: usize,
    /// Object files open now.
    pub objects: usize,
    /// Different build ids known now.
    pub unwind_tables: usize,
    /// Files of the library that samples allocations which are watched now.
    pub allocation_libraries: usize,
    /// Unwind tables in the kernel now.
    pub kernel_tables: u32,
    /// Kernel memory of unwind tables, bytes.
    pub kernel_table_bytes: u64,
    /// Kernel memory of all other BPF maps, bytes.
    pub kernel_other_bytes: u64,
}

/// The state of symbolization.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SymbolStatus {
    /// Windows symbolized.
    pub windows: u64,
    /// Places named.
    pub named_frames: u64,
    /// Places that nothing names.
    pub unnamed_frames: u64,
    /// Answers from memory.
    pub cache_hits: u64,
    /// Answers that had to be looked up.
    pub cache_misses: u64,
    /// Memory of the symbol cache, bytes.
    pub cache_bytes: u64,
}

/// The state of export.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeliveryStatus {
    /// The sink: `in-process` or the server's address.
    pub exporter: String,
    /// Profiles that the sink has taken.
    pub profiles: u64,
    /// Their samples; those of profiles that had waited on disk are not counted.
    pub samples: u64,
    /// Attempts that failed and will be repeated.
    pub failed_attempts: u64,
    /// Why the last attempt failed; empty when it did not.
    pub last_error: String,
    /// Profiles waiting on disk.
    pub spooled_profiles: u64,
    /// Their size, bytes.
    pub spooled_bytes: u64,
}
