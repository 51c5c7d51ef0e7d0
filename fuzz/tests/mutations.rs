//! The short form of fuzzing: so many mutations of the seeds, and every input that ever failed.

use std::fs;
use std::panic;
use std::path::Path;

use candela_fuzz::TARGETS;
use candela_fuzz::Target;
use candela_fuzz::mutate::Random;
use candela_fuzz::mutate::mutated;

/// Writes an input that fails where it can be looked at, and says how to keep it.
fn run(target: &Target, input: &[u8], origin: &str) {
    let result = panic::catch_unwind(|| (target.run)(input));
    if result.is_err() {
        let path = std::env::temp_dir().join(format!("candela-fuzz-{}-failure", target.name));
        fs::write(&path, input).expect("writes");
        panic!(
            "target {}, {origin}: the input is in {}; mend the reader and keep the input in \
             fuzz/regressions/{}",
            target.name,
            path.display(),
            target.name
        );
    }
}

fn survive_mutations(name: &str) {
    let target = candela_fuzz::target(name).expect("a target");
    // More of them, by hand.
    let inputs = std::env::var("CANDELA_FUZZ_INPUTS");
    let inputs = inputs.map_or(target.inputs, |text| text.parse().expect("a number"));
    let seeds = (target.seeds)();
    for (number, seed) in seeds.iter().enumerate() {
        run(target, seed, &format!("seed {number}"));
    }
    for number in 0..inputs {
        let input = mutated(&seeds, &mut Random::new(number));
        run(target, &input, &format!("mutation {number}"));
    }
}

/// A test each, so that they run side by side.
macro_rules! survives_mutations {
    ($($test:ident $name:literal)*) => {
        $(
            #[test]
            fn $test() {
                survive_mutations($name);
            }
        )*

        #[test]
        fn every_target_has_its_test() {
            let tested = [$($name),*];
            assert!(TARGETS.iter().map(|target| target.name).eq(tested));
        }
    };
}

survives_mutations! {
    the_log_reader_survives_mutations "log"
    the_payload_reader_survives_mutations "payload"
    the_block_reader_survives_mutations "block"
    the_selector_parser_survives_mutations "selector"
    the_filter_parser_survives_mutations "filter"
    the_pprof_reader_survives_mutations "pprof"
    the_otlp_reader_survives_mutations "otlp"
    the_folded_reader_survives_mutations "folded"
    the_reader_of_perf_script_survives_mutations "perf-script"
    the_readers_of_printed_trees_survive_mutations "printed-tree"
    the_tree_reader_survives_mutations "tree"
    the_trie_reader_survives_mutations "trie"
    the_speedscope_reader_survives_mutations "speedscope"
    the_flamebearer_reader_survives_mutations "flamebearer"
    the_json_reader_survives_mutations "json"
    the_profile_event_lines_reader_survives_mutations "profile-event-lines"
    the_reader_of_profile_events_survives_mutations "profile-events"
    the_jfr_reader_survives_mutations "jfr"
    the_reader_of_gperftools_survives_mutations "gperftools_cpu"
    the_reader_of_legacy_text_survives_mutations "legacy_text"
    the_reader_of_jemalloc_survives_mutations "jemalloc"
    the_reader_of_goroutines_survives_mutations "goroutines"
    the_callgrind_reader_survives_mutations "callgrind"
    the_perf_data_reader_survives_mutations "perf-data"
    the_simpleperf_reader_survives_mutations "simpleperf"
    the_perfetto_reader_survives_mutations "perfetto"
    the_nettrace_reader_survives_mutations "nettrace"
    the_cpuprofile_reader_survives_mutations "cpuprofile"
    the_heapprofile_reader_survives_mutations "heapprofile"
    the_firefox_reader_survives_mutations "firefox"
    the_reader_of_chrome_traces_survives_mutations "chrome-trace"
    the_stackprof_reader_survives_mutations "stackprof"
    the_dhat_reader_survives_mutations "dhat"
    the_reader_of_target_files_survives_mutations "target_file"
    relabelling_survives_mutations "relabel"
    the_fleet_document_survives_mutations "fleet"
    the_reader_of_text_protos_survives_mutations "text-proto"
}

#[test]
fn what_failed_once_never_fails_again() {
    let regressions = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    for target in TARGETS {
        let Ok(entries) = fs::read_dir(regressions.join(target.name)) else {
            continue;
        };
        for entry in entries {
            let path = entry.expect("an entry").path();
            let input = fs::read(&path).expect("reads");
            run(target, &input, &path.display().to_string());
        }
    }
}
