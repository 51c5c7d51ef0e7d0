//! Programs that live shortly, and how much of each is seen.

use crate::host::life::check_short_programs;
use crate::support;
use candela_testing::expect_within;
use candela_testing::more_than;

/// Target A6: what lives for 200 ms is seen, by name, every single one.
#[test]
fn a_hundred_short_programs() {
    if support::cannot_sample() || support::lacks("gcc") {
        return;
    }
    let status = check_short_programs(100, 10);
    let (tables, samples) = (status.source.kernel_tables, status.source.kernel_samples);
    expect_within(
        "unwind tables in the kernel",
        tables as f64,
        50.0..,
        format_args!("{status:?}"),
    );
    expect_within(
        "samples",
        samples as f64,
        more_than(1000.0),
        format_args!("{status:?}"),
    );
}
