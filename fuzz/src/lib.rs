//! Readers that must survive any bytes, each with what must hold of the bytes that it accepts.
//!
//! The same targets run in two ways: for as long as one likes (`cargo xtask fuzz`), and in
//! `cargo test`, with so many mutations of the seeds and with every input that ever made one fail
//! (`fuzz/regressions`). Neither is led by coverage: what libFuzzer calls has to be unsafe, which
//! invariant 9 keeps out.
#![forbid(unsafe_code)]

mod agent;
mod fleet;
mod formats;
mod formats_legacy;
mod formats_perf;
mod formats_perftext;
mod formats_vm;
mod formats_webjson;
mod formats_writers;
// The tests of the reader look into the same recordings.
#[path = "../../crates/formats/tests/common/jfr_recording/mod.rs"]
mod jfr_recording;
pub mod mutate;
#[path = "../../crates/formats/tests/common/perf_recording.rs"]
mod perf_recording;
mod pushed;
mod queries;
mod store;

/// A reader and what to feed it.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// What it is called on the command line.
    pub name: &'static str,
    /// Takes any bytes.
    ///
    /// # Panics
    /// When the reader breaks a promise; that is what is looked for.
    pub run: fn(&[u8]),
    /// Sound inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Inputs of the short form, so many that each target takes a few seconds. A number and no time, so that what is
    /// sound on one machine is sound on every one.
    pub inputs: u64,
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target {
        name: "log",
        run: store::log,
        seeds: store::log_seeds,
        inputs: 8_000,
    },
    Target {
        name: "payload",
        run: store::payload,
        seeds: store::payload_seeds,
        inputs: 50_000,
    },
    Target {
        name: "block",
        run: store::block,
        seeds: store::block_seeds,
        inputs: 2_000,
    },
    Target {
        name: "selector",
        run: queries::selector,
        seeds: queries::selector_seeds,
        inputs: 100_000,
    },
    Target {
        name: "filter",
        run: queries::filter,
        seeds: queries::filter_seeds,
        inputs: 10_000,
    },
    Target {
        name: "pprof",
        run: formats::pprof,
        seeds: formats::pprof_seeds,
        inputs: 100_000,
    },
    Target {
        name: "otlp",
        run: formats::otlp,
        seeds: formats::otlp_seeds,
        inputs: 30_000,
    },
    Target {
        name: "folded",
        run: formats::folded,
        seeds: formats::folded_seeds,
        inputs: 100_000,
    },
    Target {
        name: "perf-script",
        run: formats_perftext::perf_script,
        seeds: formats_perftext::perf_script_seeds,
        inputs: 50_000,
    },
    Target {
        name: "printed-tree",
        run: formats_perftext::printed_tree,
        seeds: formats_perftext::printed_tree_seeds,
        inputs: 50_000,
    },
    Target {
        name: "tree",
        run: pushed::tree,
        seeds: pushed::tree_seeds,
        inputs: 100_000,
    },
    Target {
        name: "trie",
        run: pushed::trie,
        seeds: pushed::trie_seeds,
        inputs: 100_000,
    },
    Target {
        name: "speedscope",
        run: pushed::speedscope,
        seeds: pushed::speedscope_seeds,
        inputs: 50_000,
    },
    Target {
        name: "flamebearer",
        run: pushed::flamebearer,
        seeds: pushed::flamebearer_seeds,
        inputs: 50_000,
    },
    Target {
        name: "json",
        run: formats_writers::json,
        seeds: formats_writers::json_seeds,
        inputs: 30_000,
    },
    Target {
        name: "profile-event-lines",
        run: formats_writers::profile_event_lines,
        seeds: formats_writers::profile_event_lines_seeds,
        inputs: 20_000,
    },
    Target {
        name: "profile-events",
        run: pushed::profile_events,
        seeds: pushed::profile_events_seeds,
        inputs: 20_000,
    },
    Target {
        name: "jfr",
        run: formats::jfr,
        seeds: formats::jfr_seeds,
        inputs: 100_000,
    },
    Target {
        name: "gperftools_cpu",
        run: formats_legacy::gperftools_cpu,
        seeds: formats_legacy::gperftools_cpu_seeds,
        inputs: 100_000,
    },
    Target {
        name: "legacy_text",
        run: formats_legacy::legacy_text,
        seeds: formats_legacy::legacy_text_seeds,
        inputs: 50_000,
    },
    Target {
        name: "jemalloc",
        run: formats_legacy::jemalloc,
        seeds: formats_legacy::jemalloc_seeds,
        inputs: 50_000,
    },
    Target {
        name: "goroutines",
        run: formats_legacy::goroutines,
        seeds: formats_legacy::goroutines_seeds,
        inputs: 50_000,
    },
    Target {
        name: "callgrind",
        run: formats_vm::callgrind,
        seeds: formats_vm::callgrind_seeds,
        inputs: 20_000,
    },
    Target {
        name: "perf-data",
        run: formats_perf::perf_data,
        seeds: formats_perf::perf_data_seeds,
        inputs: 100_000,
    },
    Target {
        name: "simpleperf",
        run: formats_perf::simpleperf,
        seeds: formats_perf::simpleperf_seeds,
        inputs: 100_000,
    },
    Target {
        name: "perfetto",
        run: formats_vm::perfetto,
        seeds: formats_vm::perfetto_seeds,
        inputs: 5_000,
    },
    Target {
        name: "nettrace",
        run: formats_vm::nettrace,
        seeds: formats_vm::nettrace_seeds,
        inputs: 50_000,
    },
    Target {
        name: "cpuprofile",
        run: formats_webjson::cpuprofile,
        seeds: formats_webjson::cpuprofile_seeds,
        inputs: 50_000,
    },
    Target {
        name: "heapprofile",
        run: formats_webjson::heapprofile,
        seeds: formats_webjson::heapprofile_seeds,
        inputs: 50_000,
    },
    Target {
        name: "firefox",
        run: formats_webjson::firefox,
        seeds: formats_webjson::firefox_seeds,
        inputs: 20_000,
    },
    Target {
        name: "chrome-trace",
        run: formats_webjson::chrome_trace,
        seeds: formats_webjson::chrome_trace_seeds,
        inputs: 50_000,
    },
    Target {
        name: "stackprof",
        run: formats_webjson::stackprof,
        seeds: formats_webjson::stackprof_seeds,
        inputs: 50_000,
    },
    Target {
        name: "dhat",
        run: formats_webjson::dhat,
        seeds: formats_webjson::dhat_seeds,
        inputs: 50_000,
    },
    Target {
        name: "target_file",
        run: agent::target_file,
        seeds: agent::target_file_seeds,
        inputs: 20_000,
    },
    Target {
        name: "relabel",
        run: agent::relabelling,
        seeds: agent::relabelling_seeds,
        inputs: 5_000,
    },
    Target {
        name: "fleet",
        run: fleet::document,
        seeds: fleet::document_seeds,
        inputs: 20_000,
    },
    Target {
        name: "text-proto",
        run: fleet::text_proto,
        seeds: fleet::text_proto_seeds,
        inputs: 50_000,
    },
];

/// The target of this name.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
