//! What needs this host: its kernel, its programs, a browser.

mod compiled_programs;
mod libc_rows;
mod running_programs;
mod second_opinion;
mod stepped_programs;
