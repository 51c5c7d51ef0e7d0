//! Whether it is the host or us, when the kernel refuses our programs.

use crate::options::Options;
use crate::{Error, loader};
use libbpf_rs::libbpf_sys;
use std::os::fd::{FromRawFd, OwnedFd};

/// Why the kernel refuses our programs though it takes those of others from this process: a defect of ours, which
/// nothing on this host mends. `None` where they load, and where no BPF can be used at all.
pub fn defect() -> Option<Error> {
    let error = loader::load(&smallest()).err()?;
    let is_hosts = matches!(
        error,
        Error::MissingCapability { .. }
            | Error::NoBtf { .. }
            | Error::KernelTooOld { .. }
            | Error::Lockdown
            | Error::NoBpf
    );
    (!is_hosts && takes_programs()).then_some(error)
}

/// As small as it gets: what is probed is the verifier, not memory.
pub(crate) fn smallest() -> Options {
    Options {
        sample_ring_bytes: Some(0),
        max_processes: 1,
        max_regions: 1,
        max_tables: 1,
        ..Options::default()
    }
}

/// Whether the kernel takes a program in which nothing can be wrong.
fn takes_programs() -> bool {
    const SET_REGISTER: u8 = 0xb7;
    const EXIT: u8 = 0x95;
    let instruction = |code| libbpf_sys::bpf_insn {
        code,
        ..Default::default()
    };
    // It returns 0.
    let program = [instruction(SET_REGISTER), instruction(EXIT)];
    // SAFETY: the pointers are of a program of that many instructions and of terminated strings, all of which outlive
    // the call; without options it takes none.
    let descriptor = unsafe {
        libbpf_sys::bpf_prog_load(
            libbpf_sys::BPF_PROG_TYPE_TRACEPOINT,
            c"candela_probe".as_ptr(),
            c"GPL".as_ptr(),
            program.as_ptr(),
            program.len() as libbpf_sys::size_t,
            std::ptr::null_mut(),
        )
    };
    if descriptor < 0 {
        return false;
    }
    // SAFETY: a descriptor that the call above has just opened for us.
    drop(unsafe { OwnedFd::from_raw_fd(descriptor) });
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Waits, Wakers};

    fn everything() -> Options {
        Options {
            off_cpu_mean_ns: Some(1_000_000),
            waits: Waits {
                all: true,
                locks: true,
                run_queues: true,
                wakers: Wakers::Stacks,
                least_ns: 1_000,
            },
            fault_interval: Some(256),
            growth_mean_bytes: Some(4096..=4096),
            kernel_lock_mean_ns: Some(1_000_000),
            request_interval: Some(1),
            allocations: true,
            ..smallest()
        }
    }

    mod host_tests {
        use super::*;

        #[test]
        fn our_programs_load_wherever_any_do() {
            if let Some(error) = defect() {
                panic!("{error}");
            }
            if loader::load(&smallest()).is_err() {
                eprintln!("skipped: this process may not load BPF programs");
                return;
            }
            match loader::load(&everything()) {
                Ok(_) => {}
                Err(Error::NoTracepoint { name }) => {
                    eprintln!("skipped the programs of all kinds: no tracepoint {name} here");
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}
