//! How much of each window a wait is that goes on all the time.

use std::time::Duration;

use crate::host::continuous_kinds::check_windows;
use crate::support;

#[test]
fn what_waits_all_the_time_makes_up_every_window() {
    if support::cannot_sample_off_cpu() || support::lacks("gcc") {
        return;
    }
    check_windows(Duration::from_secs(2), 0.98..1.02);
}
