//! How soon a name is found that a process publishes late.

use crate::host::labels::check_thread_context;

#[test]
fn a_quarter_of_the_samples_have_a_name_that_is_published_late() {
    check_thread_context(0.25);
}
