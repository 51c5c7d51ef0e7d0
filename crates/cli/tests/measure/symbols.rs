//! How much of a program's CPU time is in its own functions, which get their names later.

use crate::host::symbols::check_stacks_of_the_agent;

#[test]
fn nearly_all_samples_of_the_agent_are_in_functions_with_names() {
    let test = "nearly_all_samples_of_the_agent_are_in_functions_with_names";
    check_stacks_of_the_agent(test, 0.9);
}
