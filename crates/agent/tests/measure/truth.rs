//! The truth of programs that burn known shares of their CPU time: complete stacks (target A5) and shares (target A7).

use crate::bounds::Bounds;
use crate::host::languages;
use crate::host::shares;

#[test]
fn stripped_c_without_frame_pointers() {
    shares::check_stripped_c(Bounds::Sharp);
}

#[test]
fn cpp_with_exceptions_and_inlining() {
    languages::check_cpp(Bounds::Sharp);
}

#[test]
fn rust_release_with_line_tables() {
    languages::check_rust(Bounds::Sharp);
}

#[test]
fn stripped_go() {
    languages::check_go(Bounds::Sharp);
}

#[test]
fn go_and_c_that_call_each_other() {
    languages::check_go_and_c(Bounds::Sharp);
}

#[test]
fn python_native_frames() {
    languages::check_python(Bounds::Sharp);
}

#[test]
fn node_native_frames() {
    languages::check_node(Bounds::Sharp);
}

#[test]
fn static_musl() {
    languages::check_musl(Bounds::Sharp);
}
