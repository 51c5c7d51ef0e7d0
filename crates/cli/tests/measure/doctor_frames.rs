//! How many frames `candela doctor -p PID` sees of busy programs in its short time.

use crate::host::doctor_frames::check_found_by_code;
use crate::host::doctor_frames::check_runtime;
use crate::host::doctor_frames::check_stripped;
use crate::host::doctor_frames::check_with_symbols;

const LEAST: u64 = 20;

#[test]
fn many_frames_of_a_stripped_program_are_seen() {
    check_stripped("many_frames_of_a_stripped_program_are_seen", LEAST);
}

#[test]
fn many_frames_of_a_program_with_symbols_are_seen() {
    check_with_symbols("many_frames_of_a_program_with_symbols_are_seen", LEAST);
}

#[test]
fn many_stacks_without_unwind_information_are_seen() {
    check_found_by_code("many_stacks_without_unwind_information_are_seen", LEAST);
}

#[test]
fn many_frames_of_a_runtime_with_names_are_seen() {
    check_runtime("many_frames_of_a_runtime_with_names_are_seen", LEAST);
}
