//! How many samples dumps by the real perf have, and how soon it is done with its own files.

use crate::host::perf_tool::Wanted;
use crate::host::perf_tool::check_wanted;
use crate::host::perf_tool::check_without_call_graphs;

#[test]
fn nearly_all_samples_of_perf_are_where_the_program_works() {
    check_wanted(&Wanted {
        seconds: 2,
        least_samples: 100,
        share: 0.9,
        // One that was begun when it was stopped waits for the next start.
        most_left: 1,
    });
}

#[test]
fn without_call_graphs_most_samples_of_perf_are_where_it_works() {
    check_without_call_graphs(20, 0.5);
}
