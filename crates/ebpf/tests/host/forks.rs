//! A forked process has its parent's memory: it is walked from its first sample on, whether anybody polls or not.

use crate::support::{Agent, Running, compile, function_range, spawn_talking, start};
use candela_ebpf::{Event, Options, Sampler, Target};
use candela_testing::expect_within;
use candela_unwind::WalkResult;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout};
use std::time::Duration;

const TICK: Duration = Duration::from_millis(20);
/// What a test asks for. A child's CPU time is worth thirty samples, of which a virtual machine may take some.
const FEW: usize = 2;
/// How often an order is given until there are as many.
const MOST_ORDERS: usize = 40;

/// tests/programs/forks.c and who samples it.
struct Forks {
    program: PathBuf,
    sampler: Sampler,
    agent: Agent,
    running: Running,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// A sample of somebody else than the first process.
#[derive(Debug)]
struct OfChild {
    pid: u32,
    is_known: bool,
    result: WalkResult,
    is_in_kernel: bool,
    frames: Vec<u64>,
}

impl Forks {
    fn start(directory: &Path) -> Option<Forks> {
        let program = compile("forks", &[], directory)?;
        let mut running = spawn_talking(&program, &[]);
        let mut output = BufReader::new(running.0.stdout.take().expect("piped"));
        let input = running.0.stdin.take().expect("piped");
        assert_eq!(line_of(&mut output), "ready");
        let sampler = start(&Options {
            rate_hz: 499,
            target: Target::Processes {
                pids: vec![running.pid()],
                follow_forks: true,
            },
            ..Options::default()
        })?;
        Some(Forks {
            program,
            agent: Agent::new(&sampler),
            sampler,
            running,
            input,
            output,
        })
    }

    /// Lets it fork while nobody polls; the id of its child.
    fn order(&mut self, order: &str) -> u32 {
        writeln!(self.input, "{order}").expect("it reads");
        line_of(&mut self.output).parse().expect("a process id")
    }

    /// What was sampled meanwhile of its children.
    fn samples(&mut self) -> Vec<OfChild> {
        let parent = self.running.pid();
        let mut seen = Vec::new();
        let mut take = |event: Event<'_>| {
            if let Event::Sample(sample) = event
                && sample.pid != parent
            {
                seen.push(OfChild {
                    pid: sample.pid,
                    is_known: sample.process_known,
                    result: sample.result,
                    is_in_kernel: sample.in_kernel,
                    frames: sample.user_frames.to_vec(),
                });
            }
        };
        self.sampler.poll(TICK, &mut take).expect("polls");
        self.sampler.poll(Duration::ZERO, &mut take).expect("polls");
        seen
    }

    /// Whether a sample is of the function that children burn in. Its address is that of the first process.
    fn burns(&self, sample: &OfChild) -> bool {
        let burn = function_range(&self.program, "burn_in_child");
        let pid = self.running.pid();
        let addresses = sample
            .frames
            .iter()
            .filter_map(|&frame| self.agent.file_address(pid, &self.program, frame));
        addresses.into_iter().any(|address| burn.contains(&address))
    }
}

fn line_of(output: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    output.read_line(&mut line).expect("it tells");
    line.trim().to_owned()
}

#[test]
fn children_are_walked_before_anybody_has_heard_of_them() {
    check_children(20, 0.5);
}

/// Takes more than so many samples of children in user space, of which so many may be short: where the loader binds a
/// function for the first time frames end early, because its code keeps the stack in rbx.
pub(crate) fn check_children(enough: usize, most_short: f64) {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(mut forks) = Forks::start(directory.path()) else {
        return;
    };
    forks.agent.learn(forks.running.pid());
    for order in ["fork", "grandchild"] {
        let (mut of_user, mut burning, mut short) = (0, 0, 0);
        for _ in 0..MOST_ORDERS {
            let child = forks.order(order);
            let samples = forks.samples();
            let is_right = |one: &OfChild| (one.pid == child) == (order == "fork");
            for one in samples.iter().filter(|one| forks.burns(one)) {
                assert!(is_right(one) && one.is_known, "{order}: {one:x?}");
                assert_eq!(one.result, WalkResult::Complete, "{order}: {one:x?}");
                burning += 1;
            }
            // What is sampled in the middle of a fork may have no user memory yet.
            for one in samples.iter().filter(|one| !one.is_in_kernel) {
                assert!(one.is_known, "{order}: {one:x?}");
                of_user += 1;
                short += usize::from(one.result != WalkResult::Complete);
            }
            if burning > enough && of_user > enough {
                break;
            }
        }
        assert!(
            burning > enough && of_user > enough,
            "{order}: {burning}, {of_user}"
        );
        let share = short as f64 / of_user as f64;
        let what = format!("share of stacks that are not complete, {order}");
        expect_within(&what, share, ..=most_short, of_user);
    }
    let kernel = forks.sampler.kernel_tables();
    let unannounced = kernel.remove_unannounced_processes();
    assert_eq!(unannounced.expect("a map"), 0, "all were told by then");
    assert_eq!(kernel.known_processes(), [forks.running.pid()]);
}

#[test]
fn a_vfork_is_its_parent_until_it_becomes_another_program() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(mut forks) = Forks::start(directory.path()) else {
        return;
    };
    forks.agent.learn(forks.running.pid());
    let (mut burning, mut after_exec) = (0, 0);
    for _ in 0..MOST_ORDERS {
        let child = forks.order("vfork");
        let samples = forks.samples();
        let of_child: Vec<&OfChild> = samples.iter().filter(|one| one.pid == child).collect();
        let before = of_child.partition_point(|one| one.is_known);
        let (before, after) = of_child.split_at(before);
        assert!(after.iter().all(|one| !one.is_known), "of another program");
        burning += before.iter().filter(|one| forks.burns(one)).count();
        after_exec += after.len();
        if burning > FEW && after_exec > FEW {
            break;
        }
    }
    assert!(burning > FEW && after_exec > FEW, "{burning}, {after_exec}");
}

#[test]
fn children_of_a_process_that_is_not_known_are_not_either() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(mut forks) = Forks::start(directory.path()) else {
        return;
    };
    let mut count = 0;
    for _ in 0..MOST_ORDERS {
        forks.order("fork");
        let samples = forks.samples();
        assert!(samples.iter().all(|one| !one.is_known));
        count += samples.len();
        if count > FEW {
            break;
        }
    }
    assert!(count > FEW, "{count}");
    let kernel = forks.sampler.kernel_tables();
    assert_eq!(kernel.remove_unannounced_processes().expect("a map"), 0);
}

#[test]
fn what_the_kernel_let_inherit_and_nobody_heard_of_is_forgotten() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(mut forks) = Forks::start(directory.path()) else {
        return;
    };
    forks.agent.learn(forks.running.pid());
    // Two records each: more than there is room for.
    forks.order("many 5000");
    forks.samples();
    let counters = forks.sampler.counters().expect("readable");
    assert!(counters.life_ring_full > 0, "{counters:?}");
    let kernel = forks.sampler.kernel_tables();
    let removed = kernel.remove_unannounced_processes().expect("a map");
    assert!(removed > 100, "{removed}");
    assert_eq!(kernel.remove_unannounced_processes().expect("a map"), 0);
    assert!(kernel.knows_process(forks.running.pid()));
}

#[test]
fn a_fork_that_is_told_after_the_rest_was_forgotten_is_known_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(mut forks) = Forks::start(directory.path()) else {
        return;
    };
    forks.agent.learn(forks.running.pid());
    let child = forks.order("stay");
    let kernel = forks.sampler.kernel_tables();
    assert_eq!(kernel.remove_unannounced_processes().expect("a map"), 1);
    // Its fork is told now.
    forks.samples();
    assert!(kernel.knows_process(child));
    assert_eq!(forks.order("go"), child);
    let samples = forks.samples();
    let burning = samples.iter().filter(|one| forks.burns(one)).count();
    assert!(burning > FEW, "{burning} of {}", samples.len());
    assert!(samples.iter().all(|one| one.pid != child || one.is_known));
}
