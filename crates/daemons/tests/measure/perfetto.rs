//! How many samples a snapshot has of the second after its trigger.

use crate::host::perfetto::check_snapshot;

#[test]
fn a_snapshot_has_the_samples_after_its_trigger() {
    check_snapshot(10);
}
