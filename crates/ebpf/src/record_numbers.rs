//! Numbers of record kinds, flags and counters, from bpf/record.h by the build script.
#![expect(dead_code, reason = "some are for the kernel's side only")]

include!(concat!(env!("OUT_DIR"), "/record_numbers.rs"));
