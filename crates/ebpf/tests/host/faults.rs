//! Page faults on the real kernel.

use crate::support::{Agent, compile, function_range, spawn_talking, start, until};
use candela_ebpf::{Event, Options, Sample, Target};
use candela_unwind::WalkResult;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

const TICK: Duration = Duration::from_millis(20);
const INTERVAL: u32 = 64;
const PAGES: u64 = 5000;

/// The faults of one process.
#[derive(Debug, Default)]
struct Sums {
    faults: u64,
    samples: u64,
    touched: u64,
    filled: u64,
}

/// Where the functions of the test's program are in its file.
struct Functions<'a> {
    program: &'a Path,
    touch: Range<u64>,
    fill: Range<u64>,
}

impl Functions<'_> {
    /// Adds a sample of a process with the mappings of `parent`.
    fn add(&self, sample: &Sample<'_>, agent: &Agent, parent: u32, sums: &mut Sums) {
        let faults = u64::from(sample.count);
        sums.faults += faults;
        sums.samples += 1;
        // The first ones may come before the kernel knows that the mappings are those of the parent.
        let (result, frames) = match &sample.context {
            Some(context) => agent.walk(parent, context),
            None => (sample.result, sample.user_frames.to_vec()),
        };
        if result != WalkResult::Complete {
            return;
        }
        let is_in = |range: &Range<u64>| {
            let mut addresses = frames
                .iter()
                .filter_map(|&frame| agent.file_address(parent, self.program, frame));
            addresses.any(|address| range.contains(&address))
        };
        sums.touched += faults * u64::from(is_in(&self.touch));
        sums.filled += faults * u64::from(is_in(&self.fill));
    }
}

#[test]
fn all_faults_of_a_process_are_in_samples_and_most_have_the_stack_that_they_came_from() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(program) = compile("touch", &[], directory.path()) else {
        return;
    };
    let functions = Functions {
        program: &program,
        touch: function_range(&program, "touch"),
        fill: function_range(&program, "fill"),
    };
    let mut running = spawn_talking(&program, &[&PAGES.to_string()]);
    let sampler = start(&Options {
        on_cpu: false,
        fault_interval: Some(INTERVAL),
        target: Target::Processes {
            pids: vec![running.pid()],
            follow_forks: true,
        },
        ..Options::default()
    });
    let Some(mut sampler) = sampler else {
        return;
    };
    let mut agent = Agent::new(&sampler);
    // Its mappings are there when it asks for a line.
    until("its question", || is_reading(running.pid()));
    agent.learn(running.pid());
    let mut stdin = running.0.stdin.take().expect("piped");
    stdin.write_all(b"\n").expect("it reads");
    let mut sums: HashMap<u32, Sums> = HashMap::new();
    let parent = running.pid();
    let mut has_ended = false;
    until("its end", || {
        let mut handler = |event: Event<'_>| match event {
            Event::Mapped(mapped) => agent.learn(mapped.pid),
            Event::Exit { pid, .. } => has_ended |= pid == parent,
            Event::Faults(sample) => {
                let sums = sums.entry(sample.pid).or_default();
                functions.add(&sample, &agent, parent, sums);
            }
            Event::Sample(_) | Event::OffCpu(_) => panic!("nobody asked for it"),
            _ => {}
        };
        sampler.poll(TICK, &mut handler).expect("polls");
        has_ended
    });
    let mut line = String::new();
    let stdout = running.0.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("text");
    let numbers = line.split_whitespace().map(str::parse);
    let numbers: Vec<u64> = numbers.collect::<Result<_, _>>().expect("numbers");
    let (child, faults) = (numbers[0] as u32, numbers[1]);

    let sums = &sums[&child];
    assert_eq!(sums.faults, faults, "the kernel's own count: {sums:?}");
    assert!(
        sums.samples < 2 * PAGES / u64::from(INTERVAL) + 20,
        "{sums:?}"
    );
    // The longest way from one sample to the next.
    let gap = u64::from(INTERVAL) * 3 / 2;
    let nearly_all = PAGES - gap..=PAGES + gap;
    assert!(nearly_all.contains(&sums.touched), "{sums:?}");
    assert!(nearly_all.contains(&sums.filled), "{sums:?}");
}

/// Whether a process waits for its standard input.
fn is_reading(pid: u32) -> bool {
    let call = std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
    call.starts_with(&format!("{} 0x0 ", libc::SYS_read))
}
