//! Iterator programs: run over all threads on request.

use crate::bpf_map::BpfMap;
use crate::{Error, loader};
use libbpf_rs::{Iter, IterOpts, Link, Object};
use std::io::{self, Read};

/// `struct visit` of bpf/threads.h: what the next run is for.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Visit {
    pub(crate) mode: u32,
    pub(crate) reserved: u32,
    /// The time of the samples that are taken, CLOCK_MONOTONIC in nanoseconds.
    pub(crate) time_ns: u64,
}

/// A program that can be run over all threads.
#[derive(Debug)]
pub(crate) struct ThreadVisitor {
    program: Link,
    visits: BpfMap,
}

// === impl ThreadVisitor ===

impl ThreadVisitor {
    pub(crate) fn attach(object: &Object, program: &'static str) -> Result<ThreadVisitor, Error> {
        let link = loader::program(object, program).attach_iter_with_opts(IterOpts::None);
        Ok(ThreadVisitor {
            program: link.map_err(|source| Error::Attach { program, source })?,
            visits: loader::map(object, "visits")?,
        })
    }

    /// Runs the program for each thread of the host; how many bytes it wrote.
    ///
    /// # Errors
    /// [`Error::Map`], [`Error::System`].
    pub(crate) fn visit_all(&self, visit: Visit) -> Result<usize, Error> {
        self.visits.update(0_u32, visit)?;
        let failed = Error::system("visit all threads");
        let mut threads = match Iter::new(&self.program) {
            Ok(threads) => threads,
            Err(error) => return Err(failed(io::Error::other(error))),
        };
        match threads.read_to_end(&mut Vec::new()) {
            Ok(bytes) => Ok(bytes),
            Err(error) => Err(failed(error)),
        }
    }
}
