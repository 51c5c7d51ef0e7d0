//! Programs that live shortly, and how much of each is seen.

use crate::host::life::check_short_programs;
use crate::support;

/// Target A6: what lives for 200 ms is seen, by name, every single one.
#[test]
fn a_hundred_short_programs() {
    if support::cannot_sample() || support::lacks("gcc") {
        return;
    }
    let status = check_short_programs(100, 10);
    assert!(status.source.kernel_tables >= 50, "{status:?}");
    assert!(status.source.kernel_samples > 1000, "{status:?}");
}
