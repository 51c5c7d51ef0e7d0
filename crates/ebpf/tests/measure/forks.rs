//! How many samples of forked processes are walked to their end.

use crate::host::forks::check_children;

#[test]
fn nearly_all_stacks_of_children_are_complete() {
    check_children(60, 0.05);
}
