//! Sampled allocations on the real kernel.

use crate::support::{compile, function_range, skip, spawn_talking, start, until};
use candela_ebpf::{AllocationProbes, Event, Options, Pace, Target};
use object::{Object, ObjectSegment};
use std::fs;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

const TICK: Duration = Duration::from_millis(20);
const ALLOCATIONS: u64 = 20_000;

/// What the kernel has told of the test's program.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    samples: u64,
    stand_for: u64,
    ends: u64,
}

/// Where a function begins in its file.
fn offset_of(program: &Path, function: &str) -> u64 {
    let address = function_range(program, function).start;
    let bytes = fs::read(program).expect("readable");
    let object = object::File::parse(&*bytes).expect("an object file");
    let mut segments = object.segments();
    let segment = segments.find(|it| (it.address()..it.address() + it.size()).contains(&address));
    let segment = segment.expect("a segment with the function");
    address - segment.address() + segment.file_range().0
}

/// All that a program tells while one of so many allocations is told; `None` where that cannot be seen.
fn tell(allocations_per_sample: u32) -> Option<Told> {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile("tell", &[], directory.path())?;
    let mut running = spawn_talking(&program, &[&ALLOCATIONS.to_string()]);
    let mut sampler = start(&Options {
        on_cpu: false,
        allocations: true,
        target: Target::Processes {
            pids: vec![running.pid()],
            follow_forks: false,
        },
        sample_ring_bytes: Some(32 << 20),
        ..Options::default()
    })?;
    let pace = Pace {
        allocations_per_sample,
        ..sampler.pace()
    };
    sampler.set_pace(pace).expect("it is told");
    let file = File::open(&program).expect("just compiled");
    let watch = sampler.watch_allocations(&AllocationProbes {
        file: &file,
        sampled: offset_of(&program, "sampled"),
        freed: offset_of(&program, "freed"),
    });
    let _watch = match watch {
        Err(error @ candela_ebpf::Error::ProbesForbidden) => {
            skip(&error.to_string());
            return None;
        }
        watch => watch.expect("its functions can be watched"),
    };
    let mut stdin = running.0.stdin.take().expect("piped");
    stdin.write_all(b"\n").expect("it reads");
    let mut told = Told::default();
    until("the last end", || {
        sampler
            .poll(TICK, &mut |event| match event {
                Event::Allocated(_, allocation) => {
                    told.samples += 1;
                    told.stand_for += allocation.stands_for;
                }
                Event::Freed { .. } => told.ends += 1,
                _ => {}
            })
            .expect("it polls");
        told.ends == ALLOCATIONS
    });
    let counters = sampler.counters().expect("they can be read");
    let lost = [counters.ring_full(), counters.lost, counters.frees_lost];
    assert_eq!(lost, [0; 3]);
    Some(told)
}

#[test]
fn one_allocation_of_several_stands_for_all() {
    let Some(all) = tell(1) else {
        return;
    };
    let expected = Told {
        samples: ALLOCATIONS,
        stand_for: ALLOCATIONS,
        ends: ALLOCATIONS,
    };
    assert_eq!(all, expected);

    let some = tell(4).expect("as before");
    assert_eq!(some.stand_for, 4 * some.samples);
    // Five standard errors of a choice by chance, one of four.
    let error = 5.0 * (3.0 * ALLOCATIONS as f64).sqrt();
    let difference = some.stand_for as f64 - ALLOCATIONS as f64;
    assert!(difference.abs() < error, "{some:?}");
    assert_eq!(some.ends, ALLOCATIONS);
}
