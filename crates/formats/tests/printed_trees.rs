//! Call trees as other profilers print them: pmcstat, Instruments and GHC.

use std::collections::BTreeMap;

use crate::common::folded_lines;
use crate::common::found_files;
use crate::common::real_file;
use candela_formats::Format;
use candela_formats::Limits;
use candela_formats::ReadError;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::detect;
use candela_formats::read;
use candela_formats::read_ghc_prof;
use candela_formats::read_instruments;
use candela_formats::read_pmcstat;
use candela_model::FrameKind;
use candela_model::Profile;
use proptest::prelude::*;

fn read_as(format: Format, bytes: &[u8]) -> (Profile, Report) {
    let start = &bytes[..bytes.len().min(4096)];
    assert_eq!(detect(start), Some(format));
    let (profile, report) = read(format, bytes, &ReadOptions::default()).unwrap();
    assert_eq!(profile.validate(), Ok(()));
    (profile, report)
}

fn totals(profile: &Profile) -> Vec<(String, i64)> {
    let series = profile.series.iter();
    series
        .map(|series| (series.profile_type.to_string(), series.total()))
        .collect()
}

/// Values by function of the leaf, of one series.
fn leaves(profile: &Profile, series: usize) -> BTreeMap<&str, i64> {
    let symbols = &profile.symbols;
    let mut leaves = BTreeMap::new();
    for sample in &profile.series[series].samples {
        let leaf = profile.stacks.get(sample.stack)[0];
        let function = symbols.function(symbols.lines(leaf)[0].function);
        *leaves
            .entry(symbols.strings.get(function.name))
            .or_default() += sample.value;
    }
    leaves
}

#[test]
fn samples_of_pmcstat_end_where_the_text_does() {
    let files = found_files("other");
    let Some(file) = files.iter().find(|file| file.name == "pmcstat.simple.txt") else {
        return;
    };
    let (profile, report) = read_as(Format::Pmcstat, &file.bytes);
    let expected = "inst_retired.any:samples:count:inst_retired.any:count";
    assert_eq!(totals(&profile), [(expected.to_owned(), 7447 + 5156)]);
    assert_eq!(report.count("samples_not_shown"), 35705 - 7447 - 5156);
    assert_eq!(report.notes.len(), 1, "{:?}", report.notes);
    let prefix = format!("{{}} {expected} [] ");
    let lines = folded_lines(&profile);
    let lines: Vec<&str> = lines
        .iter()
        .map(|line| line.strip_prefix(&prefix).unwrap())
        .collect();
    // What callers do not have of a function's samples.
    for line in [
        "fletcher_2_native 2546",
        "arc_cksum_verify;fletcher_2_native 887",
        "arc_buf_thaw;arc_cksum_verify;fletcher_2_native 233",
        "fork_exit;taskqueue_thread_loop;taskqueue_run_locked;zio_execute;zio_write_compress;\
         zio_compress_data;zfs_lz4_compress 7447",
    ] {
        assert!(lines.contains(&line), "{line}: {lines:#?}");
    }
    assert_eq!(lines.len(), 6);
    let symbols = &profile.symbols;
    let files: BTreeMap<&str, &str> = symbols
        .locations()
        .iter()
        .enumerate()
        .map(|(id, location)| {
            assert_eq!(location.kind, FrameKind::Kernel);
            let id = candela_model::LocationId::from_index(id);
            let function = symbols.function(symbols.lines(id)[0].function);
            let mapping = symbols.mapping(location.mapping);
            (
                symbols.strings.get(function.name),
                symbols.strings.get(mapping.file),
            )
        })
        .collect();
    assert_eq!(
        files["zio_execute"], "/boot/kernel/zfs.ko",
        "as the line above"
    );
    assert_eq!(files["taskqueue_thread_loop"], "/boot/kernel/kernel");
}

#[test]
fn each_event_of_pmcstat_is_a_series() {
    let text = "\
@ cycles [10 samples]

60.00%  [6]        a @ /bin/x
 100.0%  [6]        main
junk
@ branches [3 samples]

100.0%  [3]        a @ /bin/x
 100.0%  [9]        too many
@ cycles [2 samples]
100.0%  [2]        b
";
    let (profile, report) = read_as(Format::Pmcstat, text.as_bytes());
    let counts = totals(&profile);
    let counts: Vec<(&str, i64)> = counts.iter().map(|(id, sum)| (&id[..6], *sum)).collect();
    assert_eq!(counts, [("cycles", 8), ("branch", 9)]);
    for code in ["lines_not_understood", "children_exceed_parent"] {
        assert_eq!(report.count(code), 1, "{code}");
    }
    assert_eq!(report.count("samples_not_shown"), 4);
}

#[test]
fn own_times_of_instruments_add_up_to_the_total() {
    let files = found_files("other");
    let name = "instruments.deep-copy.txt";
    let Some(file) = files.iter().find(|file| file.name == name) else {
        return;
    };
    let (profile, report) = read_as(Format::Instruments, &file.bytes);
    assert_eq!(report.notes, []);
    let cpu = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
    assert_eq!(totals(&profile), [(cpu.to_owned(), 4_273_000_000)]);
    let leaves = leaves(&profile, 0);
    // Of the column `Self (ms)`, all lines of the function.
    assert_eq!(leaves["delta()"], 693_000_000);
    assert_eq!(leaves["alpha()"], (696 + 715) * 1_000_000);
    assert_eq!(leaves["beta()"], (702 + 704) * 1_000_000);
    let lines = folded_lines(&profile);
    let deep = "start;main;delta();alpha();leakMemory();malloc;malloc_zone_malloc;\
        szone_malloc_should_clear;allocate_pages_securely;mach_vm_map;\
        _kernelrpc_mach_vm_map_trap 1000000";
    assert!(lines.iter().any(|line| line.ends_with(deep)), "{lines:#?}");
}

#[test]
fn other_columns_and_units_of_instruments_are_read() {
    let weights = "\
Weight\tSelf Weight\t\tSymbol Name
1.50 min  100.0%\t0 s\t \tprog (123)
90.00 s  100.0%\t10.25 s\t \t main
79,750.00 ms  88.6%\t79.75 s\t \t  work
";
    let (profile, report) = read_as(Format::Instruments, weights.as_bytes());
    assert_eq!(report.notes, []);
    assert_eq!(profile.series[0].total(), 90_000_000_000);
    assert_eq!(leaves(&profile, 0)["main"], 10_250_000_000);

    let bytes = "Bytes Used\tCount\t\tSymbol Name\r\n\
        3.00 KB 100.0%\t9\t \tmain\r\n1.50 KB 50.0%\t2\t \t a\r\n12 Bytes  0.4%\t1\t \t b\r\nx\ty\r\n";
    let (profile, report) = read_as(Format::Instruments, bytes.as_bytes());
    assert_eq!(report.count("lines_not_understood"), 1);
    let memory = "memory:space:bytes:space:bytes";
    assert_eq!(totals(&profile), [(memory.to_owned(), 3072)]);
    // What its children leave.
    assert_eq!(leaves(&profile, 0)["main"], 3072 - 1536 - 12);

    let cycles = "Weight\t\tSymbol Name\n2.50 Gc 100.0%\t\tmain\n1.0 Kc 0.0%\t\t a\n";
    let (profile, _) = read_as(Format::Instruments, cycles.as_bytes());
    let id = "cycles:cycles:count:cycles:count";
    assert_eq!(totals(&profile), [(id.to_owned(), 2_500_000_000)]);
}

#[test]
fn reports_of_ghc_with_ticks_are_exact() {
    let (profile, report) = read_as(Format::GhcProf, &real_file("ghc-prof/ticks.prof"));
    assert_eq!(report.notes, []);
    let expected = [
        // `1879 ticks @ 1000 us` and `total alloc = 2,740,711,064 bytes` stand above the tree.
        ("process_cpu:cpu:nanoseconds:cpu:nanoseconds", 1_879_000_000),
        ("memory:alloc_space:bytes:space:bytes", 2_740_711_064),
        ("calls:calls:count:calls:count", 6_195_095 + 60_000 * 2 + 3),
    ];
    let found = totals(&profile);
    let found: Vec<(&str, i64)> = found.iter().map(|(id, sum)| (id.as_str(), *sum)).collect();
    assert_eq!(found, expected);
    assert_eq!(leaves(&profile, 0)["Main.collatz.go"], 1_832_000_000);
    assert_eq!(leaves(&profile, 1)["Main.spelled"], 125_334_000);
    assert_eq!(leaves(&profile, 2)["Main.collatz"], 60_000);
    let series = &profile.series[0];
    assert_eq!((series.period, series.duration_ns), (1_000_000, 0));
    let date = series.start_ns / 1_000_000_000;
    assert_eq!(date, 1_795_351_140, "2026-11-22 12:39");
    let lines = folded_lines(&profile);
    let go = "MAIN;Main.CAF;Main.main;Main.collatz;Main.collatz.go 1832000000";
    assert!(lines.iter().any(|line| line.ends_with(go)), "{lines:#?}");
    let symbols = &profile.symbols;
    let mut functions = symbols.functions().iter();
    let lambda =
        functions.find(|function| symbols.strings.get(function.name) == "Main.histogram.\\");
    let lambda = lambda.unwrap();
    assert_eq!(symbols.strings.get(lambda.file), "Main.hs");
    assert_eq!(lambda.start_line, 14);
}

#[test]
fn reports_of_ghc_with_shares_are_as_fine_as_these() {
    let (profile, report) = read_as(Format::GhcProf, &real_file("ghc-prof/percent.prof"));
    assert_eq!(report.count("values_from_shares"), 15);
    // 0.1 + 0.4 + 97.3 + 1.4 + 0.1 + 0.7 percent of 1764 ms happen to be all.
    assert_eq!(profile.series[0].total(), 1_764_000_000);
    assert_eq!(leaves(&profile, 0)["Main.collatz.go"], 1_764_000 * 973);
    let share = |permille: i64| 2_740_711_064 * permille / 1000;
    let shares = [4, 2, 938, 46, 1, 10];
    let bytes: i64 = shares.into_iter().map(share).sum();
    assert_eq!(profile.series[1].total(), bytes);
}

#[test]
fn names_of_ghc_may_hold_spaces_and_leave_their_columns() {
    let text = "\
\tTue Sep  4 10:00 2018 Time and Allocation Profiling Report  (Final)

\ttotal time  =        0.02 secs   (20 ticks @ 1000 us, 1 processor)
\ttotal alloc =       1,000 bytes  (excludes profiling overheads)

COST CENTRE  MODULE  no.  entries  %time %alloc   %time %alloc

MAIN         MAIN    1          0    0.0    0.0   100.0  100.0
 my label    Main    2          1   50.0   40.0    50.0   40.0
 a_name_that_is_far_too_long Data.Map 3 2  50.0   60.0    50.0   60.0
 broken
";
    let (profile, report) = read_as(Format::GhcProf, text.as_bytes());
    assert_eq!(report.count("lines_not_understood"), 1);
    let expected = BTreeMap::from([
        ("Data.Map.a_name_that_is_far_too_long", 10_000_000),
        ("Main.my label", 10_000_000),
    ]);
    assert_eq!(leaves(&profile, 0), expected);
    assert_eq!(profile.series[1].total(), 1000);
}

#[test]
fn what_is_none_of_them_says_what_is_expected() {
    type Reader = fn(&[u8], &ReadOptions) -> Result<(Profile, Report), ReadError>;
    let readers: [(Reader, &str); 3] = [
        (|bytes, options| read_pmcstat(bytes, options), "@ event"),
        (
            |bytes, options| read_instruments(bytes, options),
            "Running Time",
        ),
        (
            |bytes, options| read_ghc_prof(bytes, options),
            "COST CENTRE",
        ),
    ];
    for (reader, expected) in readers {
        for text in ["", "hello\n", "a;b 1\n"] {
            let error = reader(text.as_bytes(), &ReadOptions::default()).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}

#[test]
fn deep_trees_take_no_quadratic_time() {
    let mut text = "@ cycles [1 samples]\n".to_owned();
    for depth in 0..3000 {
        text.push_str(&" ".repeat(depth));
        text.push_str("100.0%  [9]  f\n");
    }
    let options = ReadOptions {
        limits: Limits {
            max_stack_depth: 10,
            ..Limits::default()
        },
        ..ReadOptions::default()
    };
    let (profile, report) = read_pmcstat(text.as_bytes(), &options).unwrap();
    assert_eq!(profile.series[0].total(), 9);
    assert_eq!(report.count("stacks_cut"), 1);
}

proptest! {
    #[test]
    fn any_lines_are_survived(
        text in "(@ e \\[[0-9]{1,3} samples\\]\n|Weight\tSelf\t\tSymbol Name\n|COST CENTRE MODULE SRC no. entries ticks\n|[ ]{0,2}[0-9.%]{0,6}[ \t\\[]{0,2}[0-9]{0,3}\\]?[ \ta-z@é.]{0,6}[0-9 .]{0,16}\n){0,9}"
    ) {
        for reader in [read_pmcstat, read_instruments, read_ghc_prof] {
            if let Ok((profile, _)) = reader(text.as_bytes(), &ReadOptions::default()) {
                prop_assert_eq!(profile.validate(), Ok(()));
            }
        }
        let _ = detect(text.as_bytes());
    }
}
