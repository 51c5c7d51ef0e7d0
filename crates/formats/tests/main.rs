//! Readers and writers: files of the corpus, other programs, properties.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

// The command line's resolver: a binary crate has no tests of its own that others can call.
#[path = "../../cli/src/binaries/mod.rs"]
mod binaries;
mod bounded_references;
mod bounded_work;
mod broken_text;
mod callgrind;
mod chrome_trace;
mod common;
mod dot;
mod firefox;
mod firefox_properties;
mod flamebearer;
mod folded;
mod host;
mod html;
mod html_diff;
mod jfr;
mod jfr_corpus;
mod json;
mod legacy;
mod legacy_dumps;
mod nettrace;
mod normalize;
mod otlp;
mod otlp_agents;
mod otlp_index_zero;
mod otlp_properties;
mod perf_data;
mod perf_script;
mod perf_script_corpus;
mod perf_script_stacks;
mod perfetto;
mod pprof;
mod pprof_text;
mod printed_trees;
mod profile_event_lines;
mod profile_events;
mod pushed_text;
mod ruby_and_dhat;
mod simpleperf;
mod speedscope;
mod speedscope_schema;
mod svg;
mod text_formats;
mod v8;
