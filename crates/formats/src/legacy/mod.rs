//! What pprof was before it was protobuf, and what is written to this day: CPU profiles of gperftools,
//! the text of heaps, locks and threads, stack dumps of Go, and heap profiles of jemalloc.
//!
//! The rules are those of pprof's `legacy_profile.go`, so that values, addresses and mappings are the
//! same that `go tool pprof` shows.

mod address_stacks;
mod contention;
mod counts;
mod cpu;
mod go_frames;
mod goroutines;
mod heap;
mod java_symbols;
mod java_text;
mod jemalloc;
mod lines;
mod memory_map;
mod text;
mod threads;
mod unsample;

use crate::format::Entry;
use crate::format::Format;
use crate::format::Part;
pub use crate::legacy::cpu::read_gperftools_cpu;
pub use crate::legacy::goroutines::read_goroutines;
pub use crate::legacy::jemalloc::read_jemalloc;
pub use crate::legacy::text::read_legacy_text;

pub(crate) const CPU_ENTRY: Entry = Entry {
    format: Format::GperftoolsCpu,
    name: CPU_NAME,
    extensions: &[],
    description: "CPU profile of gperftools, binary",
    keeps: &[
        Part::AllTypes,
        Part::Period,
        Part::Addresses,
        Part::Mappings,
    ],
    detects: Some(cpu::looks_like_gperftools_cpu),
    read: Some(|input, options| read_gperftools_cpu(input, options)),
    write: None,
};

pub(crate) const TEXT_ENTRY: Entry = Entry {
    format: Format::LegacyText,
    name: TEXT_NAME,
    extensions: &[],
    description: "heap, lock, thread and goroutine profiles as text (gperftools, Go's debug=1)",
    keeps: &[
        Part::AllTypes,
        Part::SampleLabels,
        Part::Window,
        Part::Period,
        Part::Addresses,
        Part::Mappings,
        Part::BuildIds,
        Part::SourceFiles,
        Part::Lines,
    ],
    detects: Some(text::looks_like_legacy_text),
    read: Some(|input, options| read_legacy_text(input, options)),
    write: None,
};

pub(crate) const JEMALLOC_ENTRY: Entry = Entry {
    format: Format::Jemalloc,
    name: JEMALLOC_NAME,
    extensions: &[],
    description: "heap profile of jemalloc",
    keeps: &[
        Part::AllTypes,
        Part::Period,
        Part::Addresses,
        Part::Mappings,
    ],
    detects: Some(jemalloc::looks_like_jemalloc),
    read: Some(|input, options| read_jemalloc(input, options)),
    write: None,
};

pub(crate) const GOROUTINES_ENTRY: Entry = Entry {
    format: Format::GoStacks,
    name: GOROUTINES_NAME,
    extensions: &[],
    description: "stack dump of goroutines (Go's debug=2, panics)",
    keeps: &[Part::SampleLabels, Part::SourceFiles, Part::Lines],
    detects: Some(goroutines::looks_like_goroutines),
    read: Some(|input, options| read_goroutines(input, options)),
    write: None,
};

/// The formats' names in messages.
const CPU_NAME: &str = "gperftools";
const TEXT_NAME: &str = "pprof-text";
const JEMALLOC_NAME: &str = "jemalloc";
const GOROUTINES_NAME: &str = "go-stacks";
