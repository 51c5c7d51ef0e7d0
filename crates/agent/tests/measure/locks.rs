//! How soon waits have their stacks.

use crate::host::locks::check_who_ended;

#[test]
fn who_ended_most_waits_is_told() {
    check_who_ended(100, 50);
}
