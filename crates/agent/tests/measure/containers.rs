//! What a container's runtime takes from sampling.

use crate::host::containers::check_silent_runtime;

#[test]
fn a_runtime_that_does_not_answer_costs_no_samples() {
    // Two seconds of five are enough to see that it never waits, whatever else this host does.
    check_silent_runtime(5, 198);
}
