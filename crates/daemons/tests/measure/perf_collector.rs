//! How far dumps of what runs are apart, how many samples they have, and how many of their stacks are whole.

use crate::host::perf_collector::check_inferno;
use crate::host::perf_collector::check_without_call_graphs;
use crate::host::perf_collector::dumps;
use crate::host::perf_collector::is_whole;
use crate::support::samples::Row;
use crate::support::samples::build;
use crate::support::samples::cannot_sample;
use crate::support::samples::rows_of;
use crate::support::samples::text_of;
use candela_testing::expect_within;
use candela_testing::more_than;

#[test]
fn dumps_follow_each_other_without_a_gap_and_have_whole_stacks() {
    if cannot_sample() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let Some(programs) = build(folder.path(), &["wanted", "other"]) else {
        return;
    };
    let fields = r#""perf_polling_frequency_hz": 199, "dump_duration_seconds": 2, "process_filter": {"comm": ["wan*"]}"#;
    let dumps = dumps(fields, 3);
    drop(programs);
    let rows: Vec<Vec<Row>> = dumps.iter().map(|dump| rows_of(&text_of(dump))).collect();
    let all: Vec<&Row> = rows.iter().flatten().collect();
    let samples = all.len() as f64;
    expect_within(
        "samples in all dumps",
        samples,
        more_than(100.0),
        rows.len(),
    );
    let whole = all.iter().filter(|row| is_whole(row)).count();
    expect_within(
        "share with the whole stack",
        whole as f64 / samples,
        more_than(0.9),
        samples,
    );

    let mut gaps = Vec::new();
    for pair in rows.windows(2) {
        let (Some(last), Some(first)) = (pair[0].last(), pair[1].first()) else {
            continue;
        };
        gaps.push((first.time_ns - last.time_ns) as f64 / 1e6);
    }
    let mut between: Vec<i64> = all
        .windows(2)
        .map(|pair| pair[1].time_ns - pair[0].time_ns)
        .collect();
    between.sort_unstable();
    let median = between[between.len() / 2] as f64 / 1e6;
    let worst = between[between.len() - 1] as f64 / 1e6;
    println!("between dumps {gaps:.1?} ms; between samples {median:.1} ms, at most {worst:.1} ms");
    assert!(gaps.len() >= 2, "{gaps:?}");
    for gap in gaps {
        expect_within("ms between dumps", gap, ..500.0, "");
    }
}

#[test]
fn inferno_folds_half_a_second_of_two() {
    check_inferno(2, 500_000_000);
}

#[test]
fn without_call_graphs_most_samples_are_where_it_works() {
    check_without_call_graphs(20, 0.5);
}
