//! Stacks of real programs on the real kernel.

use crate::support::{Agent, compile, function_range, spawn, start, until};
use candela_ebpf::{Event, Options, Target};
use candela_unwind::WalkResult;
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(20);
const DEPTH: usize = 60;

fn fast() -> Options {
    Options {
        rate_hz: 499,
        // Building tables in the polling thread of a debug build takes a while.
        stack_copy_burst: 10_000,
        ..Options::default()
    }
}

/// What a test keeps of a sample.
struct Seen {
    result: WalkResult,
    in_kernel: bool,
    kernel_frames: usize,
    user_frames: Vec<u64>,
    process_known: bool,
    walked: Option<(WalkResult, Vec<u64>)>,
}

impl Seen {
    /// Of the walk in user space where the kernel left it to us.
    fn final_result(&self) -> WalkResult {
        self.walked
            .as_ref()
            .map_or(self.result, |(result, _)| *result)
    }
}

/// Runs the recursion program and learns its mappings when it makes them, or after its first sample.
fn sample_recursion(
    options: &Options,
    arguments: &[&str],
    learn_at_once: bool,
    wanted: usize,
) -> Option<Recursion> {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile("recurse", &[], directory.path())?;
    let mut sampler = start(options)?;
    let mut agent = Agent::new(&sampler);
    let running = spawn(&program, arguments);
    let pid = running.pid();
    let mut executed = false;
    let mut seen: Vec<Seen> = Vec::new();
    until("samples of the recursion", || {
        sampler
            .poll(TICK, &mut |event| match event {
                Event::Mapped(mapped) if mapped.pid == pid && learn_at_once => agent.learn(pid),
                // Before that it is this test, forked.
                Event::Exec { pid: executing, .. } => executed |= executing == pid,
                Event::Sample(sample) if sample.pid == pid && executed => {
                    if !sample.process_known {
                        agent.learn(pid);
                    }
                    seen.push(Seen {
                        result: sample.result,
                        in_kernel: sample.in_kernel,
                        kernel_frames: sample.kernel_frames.len(),
                        user_frames: sample.user_frames.to_vec(),
                        process_known: sample.process_known,
                        walked: sample.context.map(|context| agent.walk(pid, &context)),
                    });
                }
                _ => {}
            })
            .expect("polls");
        seen.iter()
            .filter(|seen| seen.process_known && seen.walked.is_none())
            .count()
            >= wanted
    });
    let recurse = function_range(&program, "recurse");
    let recursion_depth = |frames: &[u64]| {
        let addresses = frames
            .iter()
            .filter_map(|&frame| agent.file_address(pid, &program, frame));
        addresses
            .filter(|address| recurse.contains(address))
            .count()
    };
    let depths = seen.iter().map(|seen| {
        recursion_depth(
            seen.walked
                .as_ref()
                .map_or(&seen.user_frames, |(_, frames)| frames),
        )
    });
    let depths = depths.collect();
    Some(Recursion { seen, depths })
}

struct Recursion {
    seen: Vec<Seen>,
    /// How many frames of `recurse` each stack has.
    depths: Vec<usize>,
}

/// The first samples may be from before main: ld.so at work.
fn at_full_depth(recursion: &Recursion) -> impl Iterator<Item = &Seen> {
    recursion
        .seen
        .iter()
        .zip(&recursion.depths)
        .filter(|(_, depth)| **depth == DEPTH + 1)
        .map(|(seen, _)| seen)
}

#[test]
fn a_deep_recursion_without_frame_pointers_walks_completely() {
    let depth = DEPTH.to_string();
    let Some(recursion) = sample_recursion(&fast(), &[&depth, "5000"], true, 100) else {
        return;
    };
    let depths = recursion.depths.iter();
    let is_first = |(seen, depth): &(&Seen, &usize)| !(seen.process_known && **depth == DEPTH + 1);
    // The loader has worked before, some of whose code keeps the stack in rbx.
    let rest = recursion.seen.iter().zip(depths).skip_while(is_first);
    let mut in_kernel = 0;
    for (seen, depth) in rest {
        let result = seen.final_result();
        assert_eq!(result, WalkResult::Complete, "{:x?}", seen.user_frames);
        assert_eq!(*depth, DEPTH + 1, "{:x?}", seen.user_frames);
        in_kernel += usize::from(seen.result == WalkResult::Complete);
    }
    assert!(in_kernel > 50, "{in_kernel} are walked in the kernel");
}

#[test]
fn the_first_samples_of_an_unknown_process_are_walked_from_their_copies() {
    let depth = DEPTH.to_string();
    let Some(recursion) = sample_recursion(&fast(), &[&depth, "5000"], false, 5) else {
        return;
    };
    let first = recursion.seen.first().expect("a sample");
    assert!(!first.process_known);
    assert_eq!(first.result, WalkResult::NoMapping);
    let unknown: Vec<&Seen> = recursion
        .seen
        .iter()
        .filter(|seen| !seen.process_known)
        .collect();
    for seen in &unknown {
        let (result, frames) = seen.walked.as_ref().expect("registers and stack");
        assert_eq!(*result, WalkResult::Complete, "{frames:x?}");
    }
}

#[test]
fn samples_in_the_kernel_have_both_stacks() {
    let depth = DEPTH.to_string();
    let Some(recursion) = sample_recursion(&fast(), &[&depth, "5000", "kernel"], true, 100) else {
        return;
    };
    let both = at_full_depth(&recursion)
        .filter(|seen| {
            seen.in_kernel && seen.kernel_frames > 1 && seen.result == WalkResult::Complete
        })
        .count();
    assert!(
        both > 20,
        "{both} samples in the kernel with complete user stacks"
    );
    assert!(
        recursion
            .seen
            .iter()
            .all(|seen| seen.in_kernel == (seen.kernel_frames > 0))
    );
}

#[test]
fn a_forked_process_is_walked_by_its_parents_mappings() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(program) = compile("recurse", &[], directory.path()) else {
        return;
    };
    let Some(mut sampler) = start(&fast()) else {
        return;
    };
    let mut agent = Agent::new(&sampler);
    // The parent's last mapping, libc, is made before main and its fork.
    let running = spawn(&program, &["60", "5000", "fork"]);
    let mut child = None;
    let mut walked_in_kernel = 0;
    until("samples of the forked process", || {
        sampler
            .poll(TICK, &mut |event| match event {
                Event::Mapped(mapped) if mapped.pid == running.pid() => agent.learn(mapped.pid),
                Event::Fork { pid, parent, .. } if parent == running.pid() => child = Some(pid),
                Event::Sample(sample) if Some(sample.pid) == child => {
                    let complete = sample.result == WalkResult::Complete;
                    walked_in_kernel += usize::from(complete && sample.user_frames.len() > 60);
                }
                _ => {}
            })
            .expect("polls");
        walked_in_kernel > 20
    });
}

#[test]
fn an_evicted_table_is_replaced_by_stack_copies() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(program) = compile("recurse", &[], directory.path()) else {
        return;
    };
    let Some(mut sampler) = start(&fast()) else {
        return;
    };
    let mut agent = Agent::new(&sampler);
    let running = spawn(&program, &["60", "8000"]);
    let pid = running.pid();
    let mut complete = 0;
    until("complete stacks", || {
        sampler
            .poll(TICK, &mut |event| match event {
                Event::Mapped(mapped) if mapped.pid == pid => agent.learn(pid),
                Event::Sample(sample) if sample.pid == pid => {
                    complete += usize::from(sample.result == WalkResult::Complete);
                }
                _ => {}
            })
            .expect("polls");
        complete > 5
    });
    let kernel_tables = sampler.kernel_tables();
    let id = agent.table_of(&program);
    let by_use = kernel_tables.tables_by_last_use();
    assert!(
        by_use
            .iter()
            .any(|table| table.id == id && table.last_used_ns > 0),
        "{by_use:?}"
    );
    let before = kernel_tables.memory().expect("measurable");
    let freed = kernel_tables.evict_table(id).expect("loaded");
    let after = kernel_tables.memory().expect("measurable");
    assert!(freed > 0);
    assert_eq!(before.table_bytes - after.table_bytes, freed);

    let mut walked = None;
    until("a sample without its table", || {
        sampler
            .poll(TICK, &mut |event| {
                if let Event::Sample(sample) = event
                    && sample.pid == pid
                    && sample.result == WalkResult::NoTable
                    && let Some(context) = sample.context
                {
                    walked = Some(agent.walk(pid, &context).0);
                }
            })
            .expect("polls");
        walked.is_some()
    });
    assert_eq!(walked, Some(WalkResult::Complete));
}

#[test]
fn stack_copies_of_one_process_are_limited_and_the_samples_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(program) = compile("recurse", &[], directory.path()) else {
        return;
    };
    let options = Options {
        stack_copy_burst: 5,
        stack_copies_per_second: 1,
        ..fast()
    };
    let Some(mut sampler) = start(&options) else {
        return;
    };
    let begun = Instant::now();
    let running = spawn(&program, &["10", "5000"]);
    let (mut with_copy, mut without) = (0, 0);
    until("limited samples", || {
        sampler
            .poll(TICK, &mut |event| {
                if let Event::Sample(sample) = event
                    && sample.pid == running.pid()
                {
                    assert_eq!(sample.copy_limited, sample.context.is_none());
                    with_copy += usize::from(sample.context.is_some());
                    without += usize::from(sample.copy_limited);
                }
            })
            .expect("polls");
        without > 50
    });
    // The burst, and one for each second since, of which the last may have begun.
    let most = 6 + begun.elapsed().as_secs() as usize;
    assert!((5..=most).contains(&with_copy), "{with_copy} of {most}");
    assert!(sampler.counters().expect("readable").copies_limited >= without as u64);
}

#[test]
fn a_full_ring_loses_samples_and_counts_each() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(program) = compile("recurse", &[], directory.path()) else {
        return;
    };
    let mut running = spawn(&program, &["10", "60000"]);
    let options = Options {
        rate_hz: 1000,
        sample_ring_bytes: Some(4096),
        stack_copies_per_second: 0,
        target: Target::Processes {
            pids: vec![running.pid()],
            follow_forks: false,
        },
        ..Options::default()
    };
    let Some(mut sampler) = start(&options) else {
        return;
    };
    // Nobody reads while it runs.
    until("a full ring", || {
        sampler.counters().expect("readable").ring_full() > 10
    });
    running.0.kill().expect("it runs");
    running.0.wait().expect("it ends");
    let mut delivered = 0;
    sampler
        .poll(Duration::ZERO, &mut |event| {
            delivered += u64::from(matches!(event, Event::Sample(_)));
        })
        .expect("polls");
    let counters = sampler.counters().expect("readable");
    assert_eq!(
        counters.samples,
        delivered + counters.ring_full(),
        "{counters:?}"
    );
    assert_eq!(
        counters.samples,
        counters.results.iter().sum::<u64>(),
        "each has a result: {counters:?}"
    );
}
